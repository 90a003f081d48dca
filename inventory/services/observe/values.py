"""The values inside a reading become samples."""

from inventory.observations import BmcReading, CardValues, NodeReading
from inventory.services.observe.changes import TreeChanges
from inventory.services.observe.recording import latest
from inventory.services.samples import Sample, WriteResult, write_samples


def store_values(*, changes: TreeChanges, source: str, interval: int, reading: NodeReading | BmcReading) -> WriteResult:
    """Stores the values of a reading that was recorded as `changes`, through the one writer of samples.

    `interval` is the rhythm of the source in seconds: so long, three times over, a value may hold.
    Cards that the tree does not have at this node are left out. Call it outside any transaction:
    the writer opens its own. Which source counts where several report a card is decided by readers.
    """
    at = latest(reading.observed_at)
    samples: list[Sample] = []
    # Indexes in `changes` count the cards that are there, as the recorder saw them.
    for index, card in enumerate(card for card in reading.cards if card.present):
        series = changes.series.get(index)
        if series is not None and _says_something(card.values):
            assert card.values is not None
            samples.append(Sample(series, at, source, interval, card.values))
        for one in card.slices:
            part = changes.slices.get(one.uuid)
            if part is not None and _says_something(one.values):
                assert one.values is not None
                samples.append(Sample(part, at, source, interval, one.values))
    return write_samples(samples)


def _says_something(values: CardValues | None) -> bool:
    return values is not None and values != CardValues()
