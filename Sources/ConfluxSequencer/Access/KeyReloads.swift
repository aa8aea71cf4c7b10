import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Dispatch

/// Rereads the file of authorised keys on a queue of its own, so that the serving thread doesn't wait.
/// Readings run one at a time. The value itself is confined to the serving thread.
struct KeyReloads {
    /// A client that asked for a reading and waits for the answer.
    struct Asker: Sendable {
        let connection: ConnectionID
        let question: UInt64
        /// The key of the connection; nil if it has none.
        var key: CurvePublicKey?

        fileprivate var peer: SharingPeer { SharingPeer(RoutingID(connection), key: key) }
    }

    /// The outcome of a reading.
    struct Outcome: Sendable {
        /// nil if nobody waits for it, as after ``Sequencer/reload()``.
        let asker: Asker?
        /// The new keys, or the reason why the former keys remain.
        let result: Result<AuthorizedKeys, AuthorizedKeysError>
    }

    /// The most readings that clients wait for at once, which the keys share. *At the bound* the next client is
    /// told to ask again later.
    static let waitingMax = 16

    private let read: (@Sendable () -> Result<AuthorizedKeys, AuthorizedKeysError>)?
    private let tell: @Sendable (Outcome) -> Void
    private let queue = DispatchQueue(label: "conflux-reload")
    private var waiting = Shares<SharingPeer>()

    /// - Parameters:
    ///   - read: Reads the file; nil if there is none.
    ///   - tell: Gets each outcome, on another thread.
    init(
        read: (@Sendable () -> Result<AuthorizedKeys, AuthorizedKeysError>)?,
        tell: @escaping @Sendable (Outcome) -> Void
    ) {
        self.read = read
        self.tell = tell
    }

    /// Begins a reading.
    ///
    /// - Parameter asker: The client that waits for it; nil if none does.
    /// - Returns: The answer to send at once if no reading begins; otherwise nil.
    mutating func begin(for asker: Asker?) -> Answer.Body? {
        guard let read else {
            return .failed(
                .reloadFailed,
                message: "this sequencer has no file of authorised keys; start it with --authorized"
            )
        }
        if let asker {
            guard waiting.hasRoom(for: asker.peer, of: Self.waitingMax) else {
                return .failed(
                    .tableFull, message: "the file is being read for others; ask again later")
            }
            waiting.add(of: asker.peer)
        }
        queue.async { [tell] in tell(Outcome(asker: asker, result: read())) }
        return nil
    }

    /// Takes the outcome of a reading.
    ///
    /// - Returns: The answer for the client that asked.
    mutating func end(_ outcome: Outcome) -> Answer.Body {
        if let asker = outcome.asker { waiting.remove(of: asker.peer) }
        switch outcome.result {
        case .success(let keys): return .reloaded(count: UInt32(clamping: keys.count))
        case .failure(let error): return .failed(.reloadFailed, message: error.message)
        }
    }
}

/// Why the file of authorised keys could not be read again. The former keys remain.
public struct AuthorizedKeysError: Error, Sendable, Equatable {
    /// What is wrong and what to do.
    public let message: String

    /// Makes an error.
    ///
    /// - Parameter message: What is wrong and what to do.
    public init(_ message: String) { self.message = message }
}
