import ConfluxNode
import ConfluxProtocol
import ConfluxWorker
import Dispatch
import Foundation

/// Reads, checks and submits actions on a thread of its own, so that neither a slow input nor a
/// full outbox holds up anything else.
///
/// What it submitted comes out as batches, in the order of the lines. Bounded: the outbox bounds
/// what the sequencer has not taken, `itemsMax` what nobody has asked the outcome of.
final class DispatchFeed: Sendable {
    /// Where actions come from.
    enum Input: Sendable {
        case payload([UInt8])
        case lines(LineReader)
    }

    /// What became of one line.
    enum Item: Sendable {
        case submitted(line: Int, DispatchHandle)
        case failed(line: Int, CommandFailure)
    }

    private static let itemsMax = 1 << 18
    private static let batchItemsMax = 4_096

    let items: AsyncStream<[Item]>
    private let continuation: AsyncStream<[Item]>.Continuation
    private let room = DispatchSemaphore(value: itemsMax / batchItemsMax)
    private let input: Input
    private let encoder: ActionEncoder
    private let core: NodeCore

    init(_ input: Input, _ encoder: ActionEncoder, _ core: NodeCore) {
        self.input = input
        self.encoder = encoder
        self.core = core
        (items, continuation) = AsyncStream.makeStream()
    }

    /// Begins to read.
    func start() {
        switch input {
        case .payload(let payload):
            room.wait()
            continuation.yield([.submitted(line: 1, core.submit(encoder.target, payload))])
            continuation.finish()
        case .lines(let reader):
            let thread = Thread { self.read(reader) }
            thread.name = "conflux-input"
            thread.start()
        }
    }

    /// Has it read no further. What was submitted still comes out.
    func stop() {
        if case .lines(let reader) = input { reader.stop() }
    }

    /// Whether everything there was to read was read.
    var isComplete: Bool {
        if case .lines(let reader) = input { !reader.isStopped } else { true }
    }

    /// Whoever takes a batch says when it is done with it.
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
        } catch {
            room.wait()
            continuation.yield([.failed(line: line + 1, error)])
        }
        continuation.finish()
    }

    private func give(_ lines: ArraySlice<LineReader.Line>, first: Int, _ reader: LineReader) {
        room.wait()
        var items: [Item] = []
        items.reserveCapacity(lines.count)
        for (line, text) in zip(first..., lines) {
            guard !reader.isStopped, let item = item(line, text) else { continue }
            // What the node took no more because all is to end counts as not read.
            if reader.isStopped, case .submitted(_, let handle) = item,
                case .failed(let error)? = handle.outcome, error.code == .notConnected
            {
                break
            }
            items.append(item)
        }
        continuation.yield(items)
    }

    /// - Returns: nil for an empty line.
    private func item(_ line: Int, _ text: LineReader.Line) -> Item? {
        guard case .text(let bytes) = text else {
            return .failed(
                line: line,
                CommandFailure(
                    .invalidInput, code: "invalidAction",
                    "The line has more than \(encoder.lineBytesMax) bytes."))
        }
        guard !bytes.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) else { return nil }
        do throws(CommandFailure) {
            return .submitted(line: line, core.submit(encoder.target, try encoder.payload(bytes)))
        } catch {
            return .failed(line: line, error)
        }
    }
}
