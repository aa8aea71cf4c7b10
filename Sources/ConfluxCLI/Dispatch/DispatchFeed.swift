import ConfluxNode
import ConfluxProtocol
import ConfluxWorker
import Dispatch
import Foundation
import Synchronization

/// Reads, checks and submits actions. For a stream it does this on a thread of its own, so that
/// neither a slow input nor a full outbox holds up anything else.
///
/// What it has submitted comes out as portions, in the order of the lines. All is bounded: the
/// outbox limits the actions that the sequencer has not taken, and `itemsMax` limits the items that
/// nobody has finished with.
///
/// In a resumable run, a line's number is its action's counter (rule 11). Each line uses up a
/// counter, even a line without an action.
final class DispatchFeed: Sendable {
    /// The source of the actions.
    enum Input: Sendable {
        case payload([UInt8])
        case lines(LineReader)
    }

    /// The result of one line.
    enum Item: Sendable {
        case submitted(line: Int, DispatchHandle)
        case failed(line: Int, CommandFailure)
        /// An earlier run printed the line's outcome.
        case resumed(line: Int)
    }

    /// The results of consecutive lines, without empty lines.
    struct Portion: Sendable {
        var items: [Item] = []
        /// The last line, empty or not; 0 before the first.
        var lastLine = 0
        /// The share of the file that was read up to there; nil if the input's size is unknown.
        var share: Double?
    }

    static let itemsMax = 1 << 18
    private static let batchItemsMax = 4_096

    let portions: AsyncStream<Portion>
    private let continuation: AsyncStream<Portion>.Continuation
    /// Where the run continues; nil if the run has no session key.
    let resumption: Resumption?
    private let room = DispatchSemaphore(value: itemsMax / batchItemsMax)
    private let isAtEnd = Atomic(false)
    private let input: Input
    private let encoder: ActionEncoder
    private let core: NodeCore
    /// When the actions are dispatched; nil for now.
    private let timing: Timing?
    /// The lease under which it dispatches; nil if it needs none.
    private let lease: Lease?

    init(
        _ input: Input, _ encoder: ActionEncoder, _ core: NodeCore, timing: Timing? = nil,
        under lease: Lease? = nil, resumption: Resumption? = nil
    ) {
        self.timing = timing
        self.lease = lease
        self.resumption = resumption
        self.input = input
        self.encoder = encoder
        self.core = core
        (portions, continuation) = AsyncStream.makeStream()
    }

    /// Begins to read.
    func start() {
        switch input {
        case .payload(let payload):
            room.wait()
            let item = Item.submitted(line: 1, submit(payload))
            continuation.yield(Portion(items: [item], lastLine: 1))
            isAtEnd.store(true, ordering: .releasing)
            continuation.finish()
        case .lines(let reader):
            let thread = Thread { self.read(reader) }
            thread.name = "conflux-input"
            thread.start()
        }
    }

    /// Stops reading. What was submitted still comes out.
    func stop() {
        if case .lines(let reader) = input { reader.stop() }
    }

    /// Whether it was told to stop reading.
    var isStopped: Bool {
        if case .lines(let reader) = input { reader.isStopped } else { false }
    }

    /// Whether the whole input was read and submitted.
    var isComplete: Bool { isAtEnd.load(ordering: .acquiring) }

    /// Makes room for another portion. Call it when you are done with one.
    func finished() {
        room.signal()
    }

    private func read(_ reader: LineReader) {
        var line = 0
        do throws(CommandFailure) {
            while let (first, lines) = try reader.next() {
                line = first
                var rest = lines[...]
                while !rest.isEmpty, !reader.isStopped {
                    let batch = rest.prefix(Self.batchItemsMax)
                    rest = rest.dropFirst(batch.count)
                    give(batch, first: line, reader)
                    line += batch.count
                }
            }
            if !reader.isStopped { isAtEnd.store(true, ordering: .releasing) }
        } catch {
            room.wait()
            continuation.yield(Portion(items: [.failed(line: line + 1, error)], lastLine: line))
            // The failure is reported for a line, and decides the exit code.
            isAtEnd.store(true, ordering: .releasing)
        }
        continuation.finish()
    }

    private func give(_ lines: ArraySlice<LineReader.Line>, first: Int, _ reader: LineReader) {
        room.wait()
        var portion = Portion(lastLine: first - 1, share: reader.share)
        portion.items.reserveCapacity(lines.count)
        for (line, text) in zip(first..., lines) {
            if reader.isStopped { break }
            let item = item(line, text)
            // The sequencer has already judged all counters up to this one, so no batch may extend
            // across it.
            if UInt64(line) == resumption?.lastCounter { core.endBatch() }
            // If the node did not accept an action because the run is ending, its line counts as
            // not read.
            if reader.isStopped, case .submitted(_, let handle) = item,
                case .failed(let error)? = handle.outcome, error.code == .notConnected
            {
                break
            }
            portion.lastLine = line
            if let item { portion.items.append(item) }
        }
        continuation.yield(portion)
    }

    /// - Returns: The line's result; nil for an empty line.
    private func item(_ line: Int, _ text: LineReader.Line) -> Item? {
        if let resumption, UInt64(line) <= resumption.settled {
            return Self.isEmpty(text) ? nil : .resumed(line: line)
        }
        let item = dispatched(line, text)
        if resumption != nil {
            if case .submitted = item {} else { core.skip(1) }
        }
        return item
    }

    private func submit(_ payload: [UInt8]) -> DispatchHandle {
        if let timing { return core.set(timing, encoder.target, payload) }
        guard let lease else { return core.submit(encoder.target, payload) }
        return core.submit(encoder.target, payload, under: lease)
    }

    private static func isEmpty(_ text: LineReader.Line) -> Bool {
        guard case .text(let bytes) = text else { return false }
        return bytes.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
    }

    private func dispatched(_ line: Int, _ text: LineReader.Line) -> Item? {
        guard case .text(let bytes) = text else {
            return .failed(
                line: line,
                CommandFailure(
                    .invalidInput, code: "invalidAction",
                    """
                    The line has more than \(encoder.lineBytesMax) bytes. Make the action smaller, or \
                    raise the limit with --payload-max, here and at the sequencer.
                    """))
        }
        guard !Self.isEmpty(text) else { return nil }
        do throws(CommandFailure) {
            return .submitted(line: line, submit(try encoder.payload(bytes)))
        } catch {
            return .failed(line: line, error)
        }
    }
}
