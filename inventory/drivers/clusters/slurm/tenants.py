"""Accounts and qualities of service, by sacctmgr: it is the same in every version, slurmrestd is not."""

from collections.abc import Mapping

from msgspec.structs import replace

from inventory.drivers.clusters.capabilities import ActResult, QosSpec, TenantSpec
from inventory.drivers.clusters.readings import QosReading, TenantReading, TenantsReading
from inventory.drivers.clusters.slurm.doors import Doors, checked_name, done, now, unchanged, until
from inventory.drivers.clusters.slurm.errors import SlurmError
from inventory.drivers.clusters.slurm.gres import count_cards, parse_tres
from inventory.drivers.clusters.slurm.text import rows_of

_ACCOUNTS = "Account,User,ParentName,GrpTRES,GrpTRESMins,QOS"
_QOS = "Name,Priority,Preempt,GrpTRES,MaxTRESPerUser"
_NO_LIMIT = -1
ENFORCED = ("parent", "users", "qos", "cards", "cards_by_type", "card_seconds")


class Tenants:
    """The part of the driver that keeps accounts."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    async def read_tenants(self, *, deadline: float) -> TenantsReading:
        """All accounts with users and limits, all qualities of service."""
        start, end = now(), until(deadline)
        try:
            accounts, qos = await self._accounts(end), await self._qos(end)
        except SlurmError as error:
            return TenantsReading(observed_at=start, complete=False, failures=(error.failure(),))
        return TenantsReading(observed_at=start, tenants=tuple(accounts.values()), qos=tuple(qos.values()))

    async def ensure_tenant(self, tenant: TenantSpec, *, deadline: float) -> ActResult:
        """Makes the account where it is missing, sets its limits, adds users and qos.

        Limits of a type need that type in AccountingStorageTRES, else Slurm refuses them.
        """
        end = until(deadline)
        try:
            name = checked_name("account", tenant.name).lower()
            known = (await self._accounts(end)).get(name)
            if known is None:
                await self._add_account(name, tenant, end)
                known = (await self._accounts(end))[name]
            elif _as_asked(known, tenant):
                return unchanged("the account is so already")
            await self._set_limits(name, tenant, known, end)
            for user in sorted({user.lower() for user in tenant.users} - set(known.users)):
                await self._sacctmgr(end, "add", "user", checked_name("user", user), f"account={name}")
        except SlurmError as error:
            return error.result()
        return done("" if tenant.storage is None else "not enforced by Slurm: storage")

    async def _add_account(self, name: str, tenant: TenantSpec, end: float) -> None:
        words = [f"{key}={value}" for key, value in _described(tenant).items() if value]
        await self._sacctmgr(end, "add", "account", name, *words)

    async def _set_limits(self, name: str, tenant: TenantSpec, known: TenantReading, end: float) -> None:
        minutes = None if tenant.card_seconds is None else tenant.card_seconds // 60
        types = {kind: _NO_LIMIT for kind, _ in known.cards_by_type} | dict(tenant.cards_by_type)
        limited = [f",gres/gpu:{checked_name('type', kind)}={number}" for kind, number in sorted(types.items())]
        limits = [f"GrpTRES={_limit(tenant.cards)}{''.join(limited)}", f"GrpTRESMins={_limit(minutes)}"]
        missing = sorted({checked_name("qos", qos).lower() for qos in tenant.qos} - set(known.qos))
        added = [f"QosLevel+={','.join(missing)}"] if missing else []
        await self._sacctmgr(end, "modify", "account", name, "set", *limits, *added)

    async def ensure_qos(self, qos: QosSpec, *, deadline: float) -> ActResult:
        """Makes the quality of service where it is missing and sets it."""
        end = until(deadline)
        try:
            name = checked_name("qos", qos.name).lower()
            preempts = ",".join(sorted(checked_name("qos", other).lower() for other in qos.preempts))
            known = (await self._qos(end)).get(name)
            wanted = QosReading(
                name=name,
                priority=qos.priority,
                preempts=tuple(preempts.split(",")) if preempts else (),
                cards=qos.cards,
                cards_per_user=qos.cards_per_user,
            )
            if known == wanted:
                return unchanged("the qos is so already")
            if known is None:
                await self._sacctmgr(end, "add", "qos", name)
            words = [f"Priority={qos.priority}", f"Preempt={preempts}"]
            words += [f"GrpTRES={_limit(qos.cards)}", f"MaxTRESPerUser={_limit(qos.cards_per_user)}"]
            await self._sacctmgr(end, "modify", "qos", name, "set", *words)
        except SlurmError as error:
            return error.result()
        return done()

    async def _sacctmgr(self, end: float, *words: str) -> None:
        command = self._doors.commands("accounts and qos")
        await command.run("sacctmgr", "--immediate", *words, until=end)

    async def _accounts(self, end: float) -> dict[str, TenantReading]:
        command = self._doors.commands("accounts and qos")
        shown = ("show", "associations", f"format={_ACCOUNTS}")
        output = await command.run("sacctmgr", "--noheader", "--parsable2", *shown, until=end)
        found: dict[str, TenantReading] = {}
        users: dict[str, list[str]] = {}
        for account, user, parent, cards, minutes, qos in rows_of(output.decode(errors="replace"), 6):
            if user:
                users.setdefault(account, []).append(user)
                continue
            spent = _cards(minutes)
            found[account] = TenantReading(
                name=account,
                parent=parent,
                qos=tuple(sorted(name for name in qos.split(",") if name)),
                cards=_cards(cards),
                cards_by_type=count_cards(parse_tres(cards)).by_type,
                card_seconds=None if spent is None else spent * 60,
            )
        return {name: replace(tenant, users=tuple(sorted(set(users.get(name, []))))) for name, tenant in found.items()}

    async def _qos(self, end: float) -> dict[str, QosReading]:
        command = self._doors.commands("accounts and qos")
        shown = ("show", "qos", f"format={_QOS}")
        output = await command.run("sacctmgr", "--noheader", "--parsable2", *shown, until=end)
        return {
            name: QosReading(
                name=name,
                priority=int(priority or 0),
                preempts=tuple(sorted(other for other in preempts.split(",") if other)),
                cards=_cards(cards),
                cards_per_user=_cards(per_user),
            )
            for name, priority, preempts, cards, per_user in rows_of(output.decode(errors="replace"), 5)
        }


def _as_asked(known: TenantReading, tenant: TenantSpec) -> bool:
    minutes = None if tenant.card_seconds is None else tenant.card_seconds // 60 * 60
    return (
        known.cards == tenant.cards
        and dict(known.cards_by_type) == dict(tenant.cards_by_type)
        and known.card_seconds == minutes
        and {user.lower() for user in tenant.users} <= set(known.users)
        and {qos.lower() for qos in tenant.qos} <= set(known.qos)
    )


def _described(tenant: TenantSpec) -> Mapping[str, str]:
    return {
        "parent": tenant.parent and checked_name("account", tenant.parent),
        "description": tenant.description,
        "organization": tenant.organization,
    }


def _limit(number: int | None) -> str:
    return f"gres/gpu={_NO_LIMIT if number is None else number}"


def _cards(text: str) -> int | None:
    return parse_tres(text).get("gpu")
