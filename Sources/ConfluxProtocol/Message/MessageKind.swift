/// The kind of a message: one byte of its frame's header.
///
/// Every kind of the protocol has had its number since the first version, so that no header changes
/// when a later version adds a kind. The sequencer answers a kind that it does not speak with `bye`
/// and ``ByeCode/unsupported``. A node ignores such a kind.
public enum MessageKind: UInt8, Hashable, Sendable, CaseIterable {
    // A node to the sequencer.
    case hello = 0x01
    case open = 0x02
    case close = 0x03
    case drop = 0x04
    case upgrade = 0x05
    case submit = 0x06
    case fetch = 0x07
    case load = 0x08
    case progress = 0x09
    case digest = 0x0A
    case snapshot = 0x0B
    case question = 0x0C
    case answer = 0x0D
    case lock = 0x0E
    case barrier = 0x0F
    case skip = 0x10
    case activity = 0x11
    case bye = 0x12
    case freeze = 0x13
    case migrated = 0x15
    case leaving = 0x16

    // The sequencer to a node.
    case welcome = 0x41
    case opened = 0x42
    case receipts = 0x43
    case rejection = 0x44
    case expected = 0x45
    case entries = 0x46
    case snapshotServed = 0x47
    case snapshotRequest = 0x48
    case questionAsked = 0x49
    case answerGiven = 0x4A
    case lockOutcome = 0x4B
    case confirmed = 0x4C
    case redirect = 0x4D
    case farewell = 0x4E
    case divergence = 0x4F
    case reload = 0x50
    case migrate = 0x51

    // The feed.
    case commit = 0x81
    case beat = 0x82
    case activityPublished = 0x83
}
