/// Why something can't be done with a store or its value, name, order, reducers, history or archive.
///
/// For a failed dispatch see ``DispatchError``.
public struct StoreError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it is: stable, and fit for a program to decide by.
    public enum Code: String, Sendable {
        /// No living store is registered under the name.
        case unknown
        /// The store under the name is one of another state.
        case otherState
        /// Something else of the kind has the name: another living store, or another type of actions.
        case nameTaken
        /// A name has characters that it may not have, or is empty or too long.
        case invalidName
        /// The store would wait for one that waits for it.
        case cycle
        /// The model is replicated: its reducers don't change any more.
        case frozen
        /// No reducer is registered for the action's type.
        case noReducer
        /// A node replicates the store, or bridges its state. So the log decides about its actions, and this process
        /// can't lock, order, rewind or archive it by itself.
        case replicated
        /// The recorder keeps no value there.
        case noSuchStep
        /// A recording makes no sense, or a folder or a file can't be read.
        case unreadable
        /// A file is not as it was written.
        case damaged
        /// What was saved is no value of this program: it can't be decoded, or a newer program wrote it.
        case incompatible
        /// A file can't be written.
        case unwritable
        /// The value can't be encoded.
        case unencodable
        /// A snapshot is newer than the program.
        case newerSnapshot
        /// The migration of a snapshot threw an error.
        case migrationFailed
        /// A snapshot or an action can't be decoded, though its version is known: the form of the type changed, and
        /// its version did not.
        case formChanged
        /// The value was not as wanted in time.
        case timedOut
        /// A model's schedule has no room for another item.
        case scheduleFull
        /// The waiting task was cancelled.
        case cancelled
        /// Nothing changes the store any more: it was dropped, or closed, or its node was.
        case ended
    }

    /// What kind of failure it is.
    public let code: Code
    /// What happened and what to do.
    public let message: String
    /// What caused it, if that is known.
    public let reason: (any Error)?

    package init(_ code: Code, _ message: String, _ reason: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.reason = reason
    }

    /// The code and the message.
    public var description: String { "\(code.rawValue): \(message)" }
}
