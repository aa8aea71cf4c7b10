import Conflux

/// The state that a simulation uses unless it is given others: it remembers who wrote what last, so
/// that a doubled or swapped entry changes it for ever.
struct Journal: Model {
    static let name = "journal"

    enum Action: Codable, Sendable {
        case write(process: Int, index: Int)
        case refuse(process: Int, index: Int)
    }

    struct Refused: Error {}

    private var count = 0
    private var chain: UInt64 = 0
    private var last: [String: Int] = [:]
    /// How many entries came twice or in the wrong order.
    private var faults = 0

    func check(_ action: Action, _ context: ActionContext) throws {
        if case .refuse = action { throw Refused() }
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        guard case .write(let process, let index) = action else { return }
        let key = String(process)
        if let former = last[key], former >= index { faults += 1 }
        last[key] = index
        if last.count > 16 { last = [key: index] }
        count += 1
        var random = context.random
        var mixer = SplitMix64(
            seed: chain ^ UInt64(process) << 32 ^ UInt64(index) ^ random.next()
                ^ UInt64(bitPattern: context.timestamp.rawValue))
        chain = mixer.next()
    }
}

extension SimulatedState {
    /// A state that shows every loss, doubling and swap of entries.
    public static let journal = replicated(ModelState<Journal>.self) { place, random in
        random.chance(0.1)
            ? .refuse(process: place.process, index: place.index)
            : .write(process: place.process, index: place.index)
    }
}
