import CPartner
import ConfluxNode
import Foundation

/// A state whose actions are opaque bytes: their producer, their index, and filling.
///
/// It is bridged, not replicated, as an event bus is. Its store checks the order.
final class FrameState: BridgedState {
    typealias Action = Data
    typealias Mutations = FrameMutations

    static let name = "frames"
    static let coding = PayloadCoding.compact

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

    /// An action of so many bytes: 16 or more.
    static func action(ofBytes count: Int = Int(PARTNER_ACTION_BYTES)) -> Data {
        Data(repeating: UInt8(ascii: "x"), count: count)
    }

    static func write(producer: Int, index: Int, to action: inout Data) {
        action.withUnsafeMutableBytes { bytes in
            bytes.storeBytes(of: UInt64(producer), toByteOffset: 0, as: UInt64.self)
            bytes.storeBytes(of: UInt64(index), toByteOffset: 8, as: UInt64.self)
        }
    }

    fileprivate func apply(_ action: Data) {
        let (producer, index) = action.withUnsafeBytes { bytes in
            (
                bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self),
                bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
            )
        }
        if isTimed { lastApplied = monotonicNanoseconds() }
        check.add(producer: producer, index: index)
    }
}

struct FrameMutations: Mutations {
    func commit(action: Data, state: FrameState) {
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
