import ConfluxProtocol
import ConfluxVocabulary

/// What is published of one store under one name. Every topic ends with a zero byte, so that the name of one store is no
/// beginning of another's.
enum Topic: String, CaseIterable {
    /// The state first, then each change.
    case changes = ""
    /// The state after each change. A slow subscriber, or a fast store, skips some.
    case states = "state:"
    /// The state first, then each action.
    case actions = "action:"
    /// The newest number, for those who want to know whether they have it.
    case beats = "beat:"

    func bytes(of store: StoreName) -> [UInt8] { Array("\(rawValue)\(store)\0".utf8) }

    /// Whether new subscribers get the state.
    var beginsWithState: Bool { self != .beats }
}
