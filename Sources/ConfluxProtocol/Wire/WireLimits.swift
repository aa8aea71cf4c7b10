/// The bounds of what is encoded and decoded.
///
/// A decoder checks every count against its bound *and* against the remaining bytes before it
/// reserves memory. So no frame makes a peer allocate more than a small multiple of the frame's own
/// size.
public struct WireLimits: Sendable, Hashable {
    /// The most bytes of one frame, header included.
    public let frameBytesMax: Int
    /// The most bytes of one encoded batch.
    public let batchBytesMax: Int
    /// The most bytes of one payload. An action with a larger one is rejected.
    public let payloadBytesMax: Int
    /// The most rows of a batch's table of targets.
    public let rowsPerBatchMax: Int
    /// The most entries of one batch.
    public let entriesPerBatchMax: Int
    /// The most blocks of one commit.
    public let blocksPerCommitMax: Int
    /// The most elements of any other list: stores, states, events, runs, commits, sessions.
    public let elementsPerListMax: Int
    /// The limits of version 1 of the protocol, as `docs/protocol.md` states them.
    public static let standard = WireLimits(
        checkedFrameBytesMax: 64 << 20, batchBytesMax: 4 << 20, payloadBytesMax: 1 << 20,
        rowsPerBatchMax: 256, entriesPerBatchMax: 65_536, blocksPerCommitMax: 65_536,
        elementsPerListMax: 65_536)

    /// The most bytes of a state that a node shows in an answer. It bounds what the sequencer must
    /// be ready to receive from any peer.
    public static let shownStateBytesMax = 16 << 20

    /// The most bytes of the shapes of a state's actions. Larger shapes are not kept.
    public static let shapesBytesMax = 4_096

    /// The most UTF-8 bytes of a text, in every version. An encoder cuts off the rest.
    public static let textBytesMax = 4_096

    /// Makes limits, and checks them. Each must be at least 1, a payload must fit into a batch, and
    /// a batch into a frame. None may be above what version 1 of the protocol allows, except those
    /// of payloads and batches, which may be as large as a frame has room for.
    ///
    /// - Throws: ``WireLimitError``, which names the first field that breaks the rule.
    public init(
        frameBytesMax: Int = standard.frameBytesMax,
        batchBytesMax: Int = standard.batchBytesMax,
        payloadBytesMax: Int = standard.payloadBytesMax,
        rowsPerBatchMax: Int = standard.rowsPerBatchMax,
        entriesPerBatchMax: Int = standard.entriesPerBatchMax,
        blocksPerCommitMax: Int = standard.blocksPerCommitMax,
        elementsPerListMax: Int = standard.elementsPerListMax
    ) throws(WireLimitError) {
        func check(_ field: String, _ value: Int, _ range: ClosedRange<Int>) throws(WireLimitError)
        {
            guard range.contains(value) else {
                throw WireLimitError(field: field, value: value, allowed: range)
            }
        }
        let most = Self.standard
        let frameBytesMin = Self.commitOverheadBytes + Self.batchOverheadBytes + 1
        try check("frameBytesMax", frameBytesMax, frameBytesMin...most.frameBytesMax)
        let batchRoomBytes = frameBytesMax - Self.commitOverheadBytes
        try check("batchBytesMax", batchBytesMax, (Self.batchOverheadBytes + 1)...batchRoomBytes)
        let payloadRoomBytes = batchBytesMax - Self.batchOverheadBytes
        try check("payloadBytesMax", payloadBytesMax, 1...payloadRoomBytes)
        try check("rowsPerBatchMax", rowsPerBatchMax, 1...most.rowsPerBatchMax)
        try check("entriesPerBatchMax", entriesPerBatchMax, 1...most.entriesPerBatchMax)
        try check("blocksPerCommitMax", blocksPerCommitMax, 1...most.blocksPerCommitMax)
        try check("elementsPerListMax", elementsPerListMax, 1...most.elementsPerListMax)
        self.init(
            checkedFrameBytesMax: frameBytesMax, batchBytesMax: batchBytesMax,
            payloadBytesMax: payloadBytesMax, rowsPerBatchMax: rowsPerBatchMax,
            entriesPerBatchMax: entriesPerBatchMax, blocksPerCommitMax: blocksPerCommitMax,
            elementsPerListMax: elementsPerListMax)
    }

    /// These limits, with what a welcome grants for batches and payloads. A node builds its batches
    /// by them.
    ///
    /// - Parameter session: The welcome's limits. A limit that is impossible (a batch larger than a
    ///   frame has room for, or too small for any action) becomes the nearest possible one.
    /// - Returns: The limits.
    public func granted(by session: SessionLimits) -> WireLimits {
        let batchBytes = min(
            max(Int(session.batchBytesMax), Self.batchOverheadBytes + 1),
            frameBytesMax - Self.commitOverheadBytes)
        let payloadBytes = min(
            max(Int(session.payloadBytesMax), 1), batchBytes - Self.batchOverheadBytes)
        return WireLimits(
            checkedFrameBytesMax: frameBytesMax, batchBytesMax: batchBytes,
            payloadBytesMax: payloadBytes, rowsPerBatchMax: rowsPerBatchMax,
            entriesPerBatchMax: entriesPerBatchMax, blocksPerCommitMax: blocksPerCommitMax,
            elementsPerListMax: elementsPerListMax)
    }

    /// What a frame with one commit of one batch has besides that batch.
    static let commitOverheadBytes = CommitLayout.blocksOffset + CommitLayout.batchPrefixBytes

    /// The most that a batch of one entry has besides the payload: its fixed fields, one row with
    /// two names of 64 bytes, and the entry's two numbers.
    static let batchOverheadBytes =
        BatchLayout.fixedBytes + BatchLayout.conditionalRowBytesMax + 2 + 5

    private init(
        checkedFrameBytesMax: Int, batchBytesMax: Int, payloadBytesMax: Int, rowsPerBatchMax: Int,
        entriesPerBatchMax: Int, blocksPerCommitMax: Int, elementsPerListMax: Int
    ) {
        self.frameBytesMax = checkedFrameBytesMax
        self.batchBytesMax = batchBytesMax
        self.payloadBytesMax = payloadBytesMax
        self.rowsPerBatchMax = rowsPerBatchMax
        self.entriesPerBatchMax = entriesPerBatchMax
        self.blocksPerCommitMax = blocksPerCommitMax
        self.elementsPerListMax = elementsPerListMax
    }
}

/// A limit that was set to an impossible value.
public struct WireLimitError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The limit's name.
    public let field: String
    /// What it was set to.
    public let value: Int
    /// The values that it may have, given the other limits.
    public let allowed: ClosedRange<Int>

    /// What to do, for people.
    public var message: String {
        "\(field) is \(value); set it between \(allowed.lowerBound) and \(allowed.upperBound)."
    }

    /// The same as ``message``.
    public var description: String { message }
}
