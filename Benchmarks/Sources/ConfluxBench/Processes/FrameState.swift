import CPartner
import ConfluxNode
import Foundation

/// An action of opaque bytes: its producer, its index, and gathered.
protocol OpaqueAction: Codable, Sendable {
    static var form: OpaqueForm { get }

    /// Makes one of so many bytes: 16 or more.
    init(bytes: Int)

    var producer: UInt64 { get }
    var index: UInt64 { get }

    mutating func write(producer: Int, index: Int)
}

/// How the bytes are kept in memory.
enum OpaqueForm: String, Codable, Sendable {
    /// In the value itself; as many as the partner's have.
    case record
    /// In a `Data`; any number.
    case data
}

/// As many bytes as the partner's actions have, in the value itself: decoding one takes no memory.
struct OpaqueRecord: OpaqueAction, CompactCodable {
    static let form = OpaqueForm.record
    private static let bytes = MemoryLayout<SIMD8<UInt64>>.size

    private var words: SIMD8<UInt64>

    init(bytes: Int) {
        precondition(bytes == Self.bytes, "a record has \(Self.bytes) bytes")
        words = SIMD8(repeating: 0x7878_7878_7878_7878)
    }

    var producer: UInt64 { words[0] }
    var index: UInt64 { words[1] }

    mutating func write(producer: Int, index: Int) {
        words[0] = UInt64(producer)
        words[1] = UInt64(index)
    }

    init(from decoder: any Decoder) throws {
        let data = try decoder.singleValueContainer().decode(Data.self)
        guard data.count == Self.bytes else {
            throw DecodingError.dataCorrupted(
                .init(
                    codingPath: decoder.codingPath,
                    debugDescription: "a record has \(Self.bytes) bytes"))
        }
        words = data.withUnsafeBytes { $0.loadUnaligned(as: SIMD8<UInt64>.self) }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(withUnsafeBytes(of: words) { Data($0) })
    }

    func write(to output: inout CompactOutput) {
        withUnsafeBytes(of: words) { output.write($0.bytes) }
    }

    init(from input: inout CompactInput) throws(CompactMismatch) {
        words = try input.bytes { (bytes) throws(CompactMismatch) in
            guard bytes.byteCount == Self.bytes else { throw CompactMismatch() }
            return bytes.unsafeLoadUnaligned(as: SIMD8<UInt64>.self)
        }
    }
}

extension Data: OpaqueAction {
    static var form: OpaqueForm { .data }

    init(bytes: Int) { self.init(repeating: UInt8(ascii: "x"), count: bytes) }

    var producer: UInt64 { word(at: 0) }
    var index: UInt64 { word(at: 8) }

    mutating func write(producer: Int, index: Int) {
        withUnsafeMutableBytes { bytes in
            bytes.storeBytes(of: UInt64(producer), toByteOffset: 0, as: UInt64.self)
            bytes.storeBytes(of: UInt64(index), toByteOffset: 8, as: UInt64.self)
        }
    }

    private func word(at offset: Int) -> UInt64 {
        withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }
    }
}

/// A state whose actions are opaque bytes.
///
/// It is bridged, not replicated, as an event bus is. Its store checks the order.
final class FrameState<Action: OpaqueAction>: BridgedState {
    typealias Mutations = FrameMutations<Action>

    static var name: String { "frames-\(Action.form)" }
    static var coding: PayloadCoding { .compact }

    // Unchecked exclusivity, as plain C has none: it is the log and the node that are measured.

    @exclusivity(unchecked) private var check: OrderCheck
    /// When the last action was applied. *Use*: by whoever had that action's receipt.
    @exclusivity(unchecked) private(set) var lastApplied: UInt64 = 0
    private let isTimed: Bool

    /// Expects so many actions; takes the time of each if it is timed.
    init(
        expected: Int, isTimed: Bool = false, completed: @escaping (Sighting) -> Void = { _ in }
    ) {
        check = OrderCheck(expected: expected, completed)
        self.isTimed = isTimed
    }

    fileprivate func apply(_ action: Action) {
        if isTimed { lastApplied = monotonicNanoseconds() }
        check.add(producer: action.producer, index: action.index)
    }
}

struct FrameMutations<Action: OpaqueAction>: Mutations {
    func commit(action: Action, state: FrameState<Action>) {
        state.apply(action)
    }
}

/// Notes the order of actions, and tells it when all that are expected have come.
struct OrderCheck {
    private var order = partner_order()
    private let expected: UInt64
    /// Told once, in the thread that applies.
    private let completed: (Sighting) -> Void

    init(expected: Int, _ completed: @escaping (Sighting) -> Void) {
        self.expected = UInt64(expected)
        self.completed = completed
    }

    mutating func add(producer: UInt64, index: UInt64) {
        partner_order_add(&order, producer, index)
        guard order.count == expected else { return }
        completed(
            Sighting(
                count: order.count, hash: order.hash, disorders: order.disorders,
                end: monotonicNanoseconds()))
    }
}
