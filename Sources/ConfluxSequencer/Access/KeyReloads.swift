import ConfluxProtocol
import Dispatch

/// Reads the file of authorised keys again, one reading after another, aside of the thread that serves.
/// Confined to that thread.
struct KeyReloads {
    /// Who asked for a reading, and waits for an answer.
    struct Asker: Sendable {
        let connection: ConnectionID
        let question: UInt64
    }

    /// A reading that has ended.
    struct Outcome: Sendable {
        /// nil if nobody waits, as behind ``Sequencer/reload()``.
        let asker: Asker?
        /// The keys, or why the former ones stay.
        let result: Result<AuthorizedKeys, AuthorizedKeysError>
    }

    /// The most readings that clients wait for. *At the bound* a further client is told to ask later.
    static let waitingMax = 16

    private let read: (@Sendable () -> Result<AuthorizedKeys, AuthorizedKeysError>)?
    private let tell: @Sendable (Outcome) -> Void
    private let queue = DispatchQueue(label: "conflux-reload")
    private var waitingCount = 0

    /// - Parameters:
    ///   - read: Reads the file; nil if there is none.
    ///   - tell: Takes an outcome, on another thread.
    init(
        read: (@Sendable () -> Result<AuthorizedKeys, AuthorizedKeysError>)?,
        tell: @escaping @Sendable (Outcome) -> Void
    ) {
        self.read = read
        self.tell = tell
    }

    /// Begins a reading.
    ///
    /// - Parameter asker: Who waits for it; nil for nobody.
    /// - Returns: What the asker is answered at once, if there is no reading.
    mutating func begin(for asker: Asker?) -> Answer.Body? {
        guard let read else {
            return .failed(
                .reloadFailed,
                message: "this sequencer has no file of authorised keys; start it with --authorized"
            )
        }
        if asker != nil {
            guard waitingCount < Self.waitingMax else {
                return .failed(
                    .tableFull, message: "the file is being read for others; ask again later")
            }
            waitingCount += 1
        }
        queue.async { [tell] in tell(Outcome(asker: asker, result: read())) }
        return nil
    }

    /// A reading has ended.
    ///
    /// - Returns: What its asker is answered.
    mutating func end(_ outcome: Outcome) -> Answer.Body {
        if outcome.asker != nil { waitingCount -= 1 }
        switch outcome.result {
        case .success(let keys): return .reloaded(count: UInt32(clamping: keys.count))
        case .failure(let error): return .failed(.reloadFailed, message: error.message)
        }
    }
}

/// Why the file of authorised keys could not be read again. The former keys stay.
public struct AuthorizedKeysError: Error, Sendable, Equatable {
    /// What is wrong and what to do.
    public let message: String

    /// Makes an error.
    ///
    /// - Parameter message: What is wrong and what to do.
    public init(_ message: String) { self.message = message }
}
