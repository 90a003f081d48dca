/* A stand-in for libnvidia-ml.so.1: the entry points that the NVML driver calls, with the state of every
 * card in a text file that a test may change while the library runs.
 *
 * The file is named by SENSAKA_NVML_STATE and is read again whenever it changed. Each line is
 * `key value`. Keys of a card are `<index>.<name>`, or `*.<name>` for every card:
 *
 *   count 8                         cards that are counted
 *   driver 550.90.07                driver version; cuda 12040; generation 1 (a new one = driver reloaded)
 *   *.fail.<function> 3             this call returns 3 (NOT_SUPPORTED)
 *   2.hang.<function> 1             this call does not return until the line is gone (at most 60 s)
 *   5.lost 15                       every call on the card returns 15 (GPU_IS_LOST), its handle too
 *   4.mig 1, 4.mig.0 9:0:1g.10gb:9856:MIG-...:1048576:42.5   place, see `struct place`
 *   1.processes 4242:1073741824:-1:-1,...                     pid:bytes:gi:ci
 *   3.xid 79                        an XID event, given once per change of `3.xid.serial`
 *
 * Structures are written as the public header lays them out. Nothing here comes from a vendor's code.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef unsigned int u32;
typedef unsigned long long u64;

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, SMALL = 7, TIMEOUT = 10, VERSION = 25 };
enum { CARDS = 16, PLACES = 8, KEYS = 1024, SAMPLES = 256 };

struct pair { char key[96]; char value[160]; };
struct card { int index; int place; };
struct place { int gi, ci; char profile[32]; u64 mib; char uuid[96]; u64 used; double sm; int there; };
struct sample { double at; int index, gi; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pair pairs[KEYS];
static int pair_count;
static struct timespec read_at;
static off_t read_size;
static ino_t read_inode;
static int opened;              /* init minus shutdown */
static long opened_generation;  /* the driver's generation at init */
static struct card cards[2][CARDS][PLACES + 1]; /* two banks: handles of before a reload are others */
static int bank;
static long seen_xid[CARDS];
static int events_wanted[CARDS];
static struct { char name[64]; long count; } calls[128];

static void load(void) {
  const char *path = getenv("SENSAKA_NVML_STATE");
  struct stat status;
  if (!path || stat(path, &status)) return;
  if (status.st_mtim.tv_sec == read_at.tv_sec && status.st_mtim.tv_nsec == read_at.tv_nsec &&
      status.st_size == read_size && status.st_ino == read_inode) return;
  FILE *file = fopen(path, "r");
  if (!file) return;
  char line[320];
  pair_count = 0;
  while (pair_count < KEYS && fgets(line, sizeof line, file)) {
    struct pair *one = &pairs[pair_count];
    line[strcspn(line, "\n")] = 0;
    char *space = strchr(line, ' ');
    if (!space) continue;
    *space = 0;
    if (space - line >= (long)sizeof one->key) continue;
    strcpy(one->key, line);
    snprintf(one->value, sizeof one->value, "%s", space + 1);
    pair_count++;
  }
  fclose(file);
  read_at = status.st_mtim;
  read_size = status.st_size;
  read_inode = status.st_ino;
}

/* The value of `name` for a card (index < 0: for the library); the card's own line goes before `*`. */
static int look(int index, const char *name, char *out, size_t size) {
  char own[96], all[96];
  if (index < 0) snprintf(own, sizeof own, "%s", name);
  else snprintf(own, sizeof own, "%d.%s", index, name);
  snprintf(all, sizeof all, "*.%s", name);
  pthread_mutex_lock(&lock);
  load();
  const char *found = NULL;
  for (int i = 0; i < pair_count; i++) {
    if (!strcmp(pairs[i].key, own)) { found = pairs[i].value; break; }
    if (index >= 0 && !strcmp(pairs[i].key, all)) found = pairs[i].value;
  }
  if (found) snprintf(out, size, "%s", found);
  pthread_mutex_unlock(&lock);
  return found != NULL;
}

static double number(int index, const char *name, double otherwise) {
  char text[160];
  return look(index, name, text, sizeof text) ? strtod(text, NULL) : otherwise;
}

static u64 whole(int index, const char *name, u64 otherwise) {
  char text[160];
  return look(index, name, text, sizeof text) ? strtoull(text, NULL, 0) : otherwise;
}

static void counted(const char *name) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < 128; i++) {
    if (!calls[i].name[0]) snprintf(calls[i].name, sizeof calls[i].name, "%s", name);
    if (!strcmp(calls[i].name, name)) { calls[i].count++; break; }
  }
  pthread_mutex_unlock(&lock);
}

/* How often an entry point was called: for tests, not part of NVML. */
long stand_in_calls(const char *name) {
  long count = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < 128; i++) if (!strcmp(calls[i].name, name)) count = calls[i].count;
  pthread_mutex_unlock(&lock);
  return count;
}

static int usable(void) {
  return opened > 0 && (long)whole(-1, "generation", 1) == opened_generation;
}

/* What every entry point does first: count, hang, fail as the state says. */
static int enter(const char *function, int index) {
  char name[96];
  counted(function);
  snprintf(name, sizeof name, "hang.%s", function);
  for (int tries = 0; tries < 12000 && number(index, name, 0); tries++) usleep(5000);
  if (!usable()) return UNINITIALIZED;
  if (index >= 0) {
    int lost = (int)whole(index, "lost", 0);
    if (lost) return lost;
  }
  snprintf(name, sizeof name, "fail.%s", function);
  return (int)whole(index, name, 0);
}

static int known(struct card *card) {
  struct card *first = &cards[bank][0][0], *end = first + CARDS * (PLACES + 1);
  return card >= first && card < end;
}

#define CARD(function)                                   \
  if (!known(card)) return usable() ? INVALID : UNINITIALIZED; \
  int code = enter(#function, card->index);              \
  if (code) return code;
#define WHOLE_CARD(function) CARD(function) if (card->place) return NOT_SUPPORTED;

static int text_out(int index, const char *name, const char *otherwise, char *out, u32 size) {
  char text[160];
  if (!look(index, name, text, sizeof text)) snprintf(text, sizeof text, "%s", otherwise);
  if (!strcmp(text, "-")) return NOT_SUPPORTED;
  if (strlen(text) + 1 > size) return SMALL;
  strcpy(out, text);
  return OK;
}

static int placed(int index, int place, struct place *out) {
  char name[32], text[160];
  memset(out, 0, sizeof *out);
  snprintf(name, sizeof name, "mig.%d", place);
  if (!look(index, name, text, sizeof text)) return 0;
  out->there = sscanf(text, "%d:%d:%31[^:]:%llu:%95[^:]:%llu:%lf", &out->gi, &out->ci, out->profile, &out->mib,
                      out->uuid, &out->used, &out->sm) >= 5;
  return out->there;
}

/* ---- library ---- */

int nvmlInitWithFlags(u32 flags) {
  (void)flags;
  counted("nvmlInitWithFlags");
  for (int tries = 0; tries < 12000 && number(-1, "hang.nvmlInitWithFlags", 0); tries++) usleep(5000);
  int code = (int)whole(-1, "fail.nvmlInitWithFlags", 0);
  if (code) return code;
  pthread_mutex_lock(&lock);
  int first = opened++ == 0;
  pthread_mutex_unlock(&lock);
  if (!first) return OK;
  opened_generation = (long)whole(-1, "generation", 1);
  bank = !bank;
  for (int i = 0; i < CARDS; i++) {
    events_wanted[i] = 0;
    seen_xid[i] = (long)whole(i, "xid.serial", 0);
    for (int p = 0; p <= PLACES; p++) cards[bank][i][p] = (struct card){i, p};
  }
  return OK;
}

int nvmlShutdown(void) {
  counted("nvmlShutdown");
  if (opened <= 0) return UNINITIALIZED;
  opened--;
  return OK;
}

const char *nvmlErrorString(int code) {
  return code == 999 ? "Unknown Error" : code == 15 ? "GPU is lost" : "Stand-in error";
}

int nvmlSystemGetDriverVersion(char *out, u32 size) {
  int code = enter("nvmlSystemGetDriverVersion", -1);
  return code ? code : text_out(-1, "driver", "550.90.07", out, size);
}

int nvmlSystemGetCudaDriverVersion(int *out) {
  int code = enter("nvmlSystemGetCudaDriverVersion", -1);
  if (!code) *out = (int)whole(-1, "cuda", 12040);
  return code;
}

int nvmlDeviceGetCount_v2(u32 *out) {
  int code = enter("nvmlDeviceGetCount_v2", -1);
  if (!code) *out = (u32)whole(-1, "count", 8);
  return code;
}

int nvmlDeviceGetHandleByIndex_v2(u32 index, struct card **out) {
  if (index >= whole(-1, "count", 8) || index >= CARDS) return INVALID;
  int code = enter("nvmlDeviceGetHandleByIndex_v2", (int)index);
  if (!code) *out = &cards[bank][index][0];
  return code;
}

/* ---- identity ---- */

int nvmlDeviceGetUUID(struct card *card, char *out, u32 size) {
  CARD(nvmlDeviceGetUUID)
  char made[96];
  struct place place;
  if (card->place) {
    if (!placed(card->index, card->place - 1, &place)) return NOT_FOUND;
    snprintf(out, size, "%s", place.uuid);
    return OK;
  }
  snprintf(made, sizeof made, "GPU-00000000-0000-4000-8000-%012d", card->index);
  return text_out(card->index, "uuid", made, out, size);
}

int nvmlDeviceGetSerial(struct card *card, char *out, u32 size) {
  WHOLE_CARD(nvmlDeviceGetSerial)
  char made[32];
  snprintf(made, sizeof made, "16512230%05d", card->index);
  return text_out(card->index, "serial", made, out, size);
}

int nvmlDeviceGetName(struct card *card, char *out, u32 size) {
  CARD(nvmlDeviceGetName)
  char name[96];
  struct place place;
  code = text_out(card->index, "name", "NVIDIA H100 80GB HBM3", name, sizeof name);
  if (code) return code;
  if (!card->place) snprintf(out, size, "%s", name);
  else if (placed(card->index, card->place - 1, &place)) snprintf(out, size, "%s MIG %s", name, place.profile);
  else return NOT_FOUND;
  return OK;
}

struct pci { char legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(struct card *card, struct pci *out) {
  WHOLE_CARD(nvmlDeviceGetPciInfo_v3)
  memset(out, 0, sizeof *out);
  out->bus = 0x18 + (u32)card->index;
  out->id = (u32)whole(card->index, "device", 0x233010DE);
  out->subsystem = 0x16C110DE;
  snprintf(out->legacy, sizeof out->legacy, "0000:%02X:00.0", out->bus);
  snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
  return OK;
}

int nvmlDeviceGetModuleId(struct card *card, u32 *out) {
  WHOLE_CARD(nvmlDeviceGetModuleId)
  *out = (u32)whole(card->index, "module", (u64)card->index + 1);
  return OK;
}

#define TEXT(function, name, otherwise)                        \
  int function(struct card *card, char *out, u32 size) {       \
    WHOLE_CARD(function) return text_out(card->index, name, otherwise, out, size); }
TEXT(nvmlDeviceGetBoardPartNumber, "part", "692-2G520-0200-000")
TEXT(nvmlDeviceGetVbiosVersion, "vbios", "96.00.74.00.01")
TEXT(nvmlDeviceGetInforomImageVersion, "inforom", "G520.0200.00.05")

#define UINT(function, name, otherwise)                        \
  int function(struct card *card, u32 *out) {                  \
    WHOLE_CARD(function) *out = (u32)whole(card->index, name, otherwise); return OK; }
UINT(nvmlDeviceGetMinorNumber, "minor", (u64)card->index)
UINT(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation", 5)
UINT(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", 16)
UINT(nvmlDeviceGetPcieReplayCounter, "replays", 0)
UINT(nvmlDeviceGetPowerUsage, "power", 612345)
UINT(nvmlDeviceGetEnforcedPowerLimit, "power_limit", 700000)

/* ---- figures ---- */

struct memory1 { u64 total, free, used; };
struct memory2 { u32 version; u64 total, reserved, free, used; };
static void memory_of(struct card *card, struct memory2 *out) {
  struct place place;
  out->total = whole(card->index, "memory_total", 85520809984ULL);
  out->used = whole(card->index, "memory_used", 1073741824ULL);
  out->reserved = whole(card->index, "memory_reserved", 500000000ULL);
  if (card->place && placed(card->index, card->place - 1, &place)) {
    out->total = place.mib << 20;
    out->used = place.used;
    out->reserved = 0;
  }
  out->free = out->total - out->used - out->reserved;
}
int nvmlDeviceGetMemoryInfo(struct card *card, struct memory1 *out) {
  CARD(nvmlDeviceGetMemoryInfo)
  struct memory2 all;
  memory_of(card, &all);
  *out = (struct memory1){all.total, all.free, all.used + all.reserved}; /* the old call counts both as used */
  return OK;
}
int nvmlDeviceGetMemoryInfo_v2(struct card *card, struct memory2 *out) {
  CARD(nvmlDeviceGetMemoryInfo_v2)
  if (out->version != 0x02000028) return VERSION;
  memory_of(card, out);
  return OK;
}

struct rates { u32 gpu, memory; };
int nvmlDeviceGetUtilizationRates(struct card *card, struct rates *out) {
  WHOLE_CARD(nvmlDeviceGetUtilizationRates)
  if (whole(card->index, "mig", 0) == 1) return NOT_SUPPORTED;
  *out = (struct rates){(u32)whole(card->index, "utilization", 97), (u32)whole(card->index, "memory_utilization", 31)};
  return OK;
}

struct temperature { u32 version, sensor; int value; };
int nvmlDeviceGetTemperatureV(struct card *card, struct temperature *out) {
  WHOLE_CARD(nvmlDeviceGetTemperatureV)
  if (out->version != 0x0100000C) return VERSION;
  out->value = (int)number(card->index, "temperature", 64);
  return OK;
}
int nvmlDeviceGetTemperature(struct card *card, u32 sensor, u32 *out) {
  WHOLE_CARD(nvmlDeviceGetTemperature)
  (void)sensor;
  *out = (u32)number(card->index, "temperature", 64);
  return OK;
}

int nvmlDeviceGetTotalEnergyConsumption(struct card *card, u64 *out) {
  WHOLE_CARD(nvmlDeviceGetTotalEnergyConsumption)
  *out = whole(card->index, "energy", 5000000000000ULL);
  return OK;
}
int nvmlDeviceGetClockInfo(struct card *card, u32 type, u32 *out) {
  WHOLE_CARD(nvmlDeviceGetClockInfo)
  *out = (u32)whole(card->index, type == 2 ? "memory_clock" : "sm_clock", type == 2 ? 2619 : 1980);
  return OK;
}
int nvmlDeviceGetCurrentClocksEventReasons(struct card *card, u64 *out) {
  WHOLE_CARD(nvmlDeviceGetCurrentClocksEventReasons)
  *out = whole(card->index, "reasons", 4);
  return OK;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(struct card *card, u64 *out) {
  WHOLE_CARD(nvmlDeviceGetCurrentClocksThrottleReasons)
  *out = whole(card->index, "reasons", 4);
  return OK;
}
int nvmlDeviceGetTotalEccErrors(struct card *card, u32 kind, u32 counter, u64 *out) {
  WHOLE_CARD(nvmlDeviceGetTotalEccErrors)
  if (counter != 0) return INVALID;
  *out = whole(card->index, kind ? "ecc_uncorrected" : "ecc_corrected", 0);
  return OK;
}
int nvmlDeviceGetRemappedRows(struct card *card, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed) {
  WHOLE_CARD(nvmlDeviceGetRemappedRows)
  *corrected = (u32)whole(card->index, "remapped_corrected", 1);
  *uncorrected = (u32)whole(card->index, "remapped_uncorrected", 2);
  *pending = *failed = 0;
  return OK;
}
int nvmlDeviceGetNvLinkState(struct card *card, u32 link, u32 *out) {
  WHOLE_CARD(nvmlDeviceGetNvLinkState)
  if (link >= whole(card->index, "links", 18)) return INVALID;
  *out = link < whole(card->index, "links_up", whole(card->index, "links", 18));
  return OK;
}

union value { double d; u32 u; unsigned long ul; u64 ull; long long sll; };
struct field { u32 id, scope; long long stamp, latency; u32 type, code; union value value; };
static void field(struct card *card, struct field *one) {
  u64 links = whole(card->index, "links", 18), up = whole(card->index, "links_up", links);
  char name[32];
  one->code = OK;
  one->type = 3;
  one->value.ull = 0xDEADBEEFDEADBEEFULL; /* what is there after a failure means nothing */
  snprintf(name, sizeof name, "field.%u", one->id);
  if ((one->code = (u32)whole(card->index, name, OK))) return;
  switch (one->id) {
    case 82: one->type = 1; one->value.u = (u32)whole(card->index, "memory_temperature", 71); return;
    case 138: case 139:
      one->value.ull = whole(card->index, one->id == 138 ? "nvlink_tx" : "nvlink_rx", 0);
      if (one->scope != 0xFFFFFFFF) one->code = INVALID;
      return;
    case 161: case 162: case 163:
      one->value.ull = one->id == 161 ? whole(card->index, "link_errors", 0) : 0;
      if (one->scope >= links) one->code = INVALID;
      return;
    case 165:
      one->type = 1;
      one->value.u = one->scope < up;
      if (one->scope >= links) one->code = INVALID;
      return;
    case 197: case 198:
      one->type = (u32)whole(card->index, "pcie_counter_type", 3);
      one->value.ull = whole(card->index, one->id == 197 ? "pcie_tx" : "pcie_rx", 0);
      return;
    default: one->code = NOT_SUPPORTED;
  }
}
int nvmlDeviceGetFieldValues(struct card *card, int count, struct field *values) {
  WHOLE_CARD(nvmlDeviceGetFieldValues)
  for (int i = 0; i < count; i++) field(card, &values[i]);
  return OK;
}

/* ---- MIG ---- */

int nvmlDeviceGetMigMode(struct card *card, u32 *current, u32 *pending) {
  WHOLE_CARD(nvmlDeviceGetMigMode)
  u64 mode = whole(card->index, "mig", 0);
  if (mode > 1) return NOT_SUPPORTED;
  *current = (u32)mode;
  *pending = (u32)whole(card->index, "mig_pending", mode);
  return OK;
}
int nvmlDeviceGetMaxMigDeviceCount(struct card *card, u32 *out) {
  WHOLE_CARD(nvmlDeviceGetMaxMigDeviceCount)
  *out = PLACES - 1;
  return OK;
}
int nvmlDeviceGetMigDeviceHandleByIndex(struct card *card, u32 index, struct card **out) {
  WHOLE_CARD(nvmlDeviceGetMigDeviceHandleByIndex)
  struct place place;
  if (index >= PLACES || !placed(card->index, (int)index, &place)) return NOT_FOUND;
  *out = &cards[bank][card->index][index + 1];
  return OK;
}
#define INSTANCE(function, member)                             \
  int function(struct card *card, u32 *out) {                  \
    CARD(function) struct place place;                         \
    if (!card->place || !placed(card->index, card->place - 1, &place)) return NOT_FOUND; \
    *out = (u32)place.member; return OK; }
INSTANCE(nvmlDeviceGetGpuInstanceId, gi)
INSTANCE(nvmlDeviceGetComputeInstanceId, ci)

struct attributes { u32 sms, ce, dec, enc, jpg, ofa, gi_slices, ci_slices; u64 mib; };
int nvmlDeviceGetAttributes_v2(struct card *card, struct attributes *out) {
  CARD(nvmlDeviceGetAttributes_v2)
  struct place place;
  if (!card->place || !placed(card->index, card->place - 1, &place)) return NOT_SUPPORTED;
  memset(out, 0, sizeof *out);
  out->gi_slices = out->ci_slices = (u32)atoi(place.profile);
  out->mib = place.mib;
  return OK;
}

/* ---- processes ---- */

struct process { u32 pid; u64 used; u32 gi, ci; };
static int processes(struct card *card, const char *name, u32 *count, struct process *out) {
  char text[160], *rest = text, *one;
  u32 found = 0, room = *count;
  int gi, ci;
  struct place place = {0};
  if (card->place && !placed(card->index, card->place - 1, &place)) return NOT_FOUND;
  if (!look(card->index, name, text, sizeof text)) text[0] = 0;
  while ((one = strsep(&rest, ","))) {
    struct process process;
    if (sscanf(one, "%u:%llu:%d:%d", &process.pid, &process.used, &gi, &ci) != 4) continue;
    if (card->place && (gi != place.gi || ci != place.ci)) continue;
    process.gi = (u32)gi;
    process.ci = (u32)ci;
    if (out && found < room) out[found] = process;
    found++;
  }
  *count = found;
  return found > room ? SMALL : OK;
}
#define PROCESSES(function, name)                              \
  int function(struct card *card, u32 *count, struct process *out) { \
    CARD(function) return processes(card, name, count, out); }
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, "processes")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps")

/* ---- performance monitoring ---- */

static struct sample samples[SAMPLES];
static int sample_used[SAMPLES];
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}
/* How many sample buffers are allocated: for tests. */
long stand_in_samples(void) {
  long used = 0;
  for (int i = 0; i < SAMPLES; i++) used += sample_used[i];
  return used;
}
struct gpm_support { u32 version, supported; };
int nvmlGpmQueryDeviceSupport(struct card *card, struct gpm_support *out) {
  WHOLE_CARD(nvmlGpmQueryDeviceSupport)
  out->supported = (u32)whole(card->index, "gpm", 1);
  return OK;
}
int nvmlGpmSampleAlloc(struct sample **out) {
  pthread_mutex_lock(&lock);
  int i = 0;
  while (i < SAMPLES && sample_used[i]) i++;
  if (i < SAMPLES) sample_used[i] = 1;
  pthread_mutex_unlock(&lock);
  if (i == SAMPLES) return 20;
  *out = &samples[i];
  (*out)->at = 0;
  return OK;
}
int nvmlGpmSampleFree(struct sample *sample) {
  if (!opened) return UNINITIALIZED;
  sample_used[sample - samples] = 0;
  return OK;
}
int nvmlGpmSampleGet(struct card *card, struct sample *sample) {
  WHOLE_CARD(nvmlGpmSampleGet)
  *sample = (struct sample){now(), card->index, -1};
  return OK;
}
int nvmlGpmMigSampleGet(struct card *card, u32 gi, struct sample *sample) {
  WHOLE_CARD(nvmlGpmMigSampleGet)
  *sample = (struct sample){now(), card->index, (int)gi};
  return OK;
}
struct metric { u32 id, code; double value; const char *info[3]; };
struct metrics { u32 version, count; struct sample *first, *second; struct metric metric[]; };
int nvmlGpmMetricsGet(struct metrics *get) {
  int code = enter("nvmlGpmMetricsGet", get->second->index);
  if (code) return code;
  if (get->version != 1 || !get->first->at || get->second->at - get->first->at < 0.1) return INVALID;
  for (u32 i = 0; i < get->count; i++) {
    struct metric *one = &get->metric[i];
    struct place place;
    char name[32];
    snprintf(name, sizeof name, "gpm.%u", one->id);
    double standard = one->id == 2 ? 83.5 : one->id == 5 ? 41.25 : one->id == 10 ? 37.5 : 100;
    one->value = number(get->second->index, name, standard);
    for (int p = 0; get->second->gi >= 0 && one->id == 2 && p < PLACES; p++)
      if (placed(get->second->index, p, &place) && place.gi == get->second->gi) one->value = place.sm;
    one->code = one->value < 0 ? NOT_SUPPORTED : OK;
  }
  return OK;
}

/* ---- events ---- */

struct event { struct card *card; u64 type, data; u32 gi, ci; };
static int the_set;
int nvmlEventSetCreate(void **out) { *out = &the_set; return usable() ? OK : UNINITIALIZED; }
int nvmlEventSetFree(void *set) { (void)set; return usable() ? OK : UNINITIALIZED; }
int nvmlDeviceGetSupportedEventTypes(struct card *card, u64 *out) {
  WHOLE_CARD(nvmlDeviceGetSupportedEventTypes)
  *out = whole(card->index, "event_types", 0x1F);
  return OK;
}
int nvmlDeviceRegisterEvents(struct card *card, u64 types, void *set) {
  WHOLE_CARD(nvmlDeviceRegisterEvents)
  (void)set;
  if (types & ~whole(card->index, "event_types", 0x1F)) return NOT_SUPPORTED;
  events_wanted[card->index] = 1;
  return OK;
}
int nvmlEventSetWait_v2(void *set, struct event *out, u32 milliseconds) {
  (void)set;
  (void)milliseconds;
  if (!usable()) return UNINITIALIZED;
  for (int i = 0; i < CARDS; i++) {
    long serial = (long)whole(i, "xid.serial", 0);
    if (!events_wanted[i] || serial == seen_xid[i]) continue;
    seen_xid[i] = serial;
    *out = (struct event){&cards[bank][i][0], 8, whole(i, "xid", 0), 0xFFFFFFFF, 0xFFFFFFFF};
    return OK;
  }
  return TIMEOUT;
}
