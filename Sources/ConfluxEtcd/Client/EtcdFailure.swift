import ConfluxLog
import ConfluxVocabulary

/// Why a call of etcd failed.
package struct EtcdFailure: Error {
    package enum Kind: Sendable {
        /// No member answers.
        case unreachable
        /// The peer is not an etcd.
        case foreign
        /// Keys, a password or rights are missing or wrong.
        case denied
        /// Authentication is not enabled.
        case notEnabled
        /// The alarm NOSPACE is active.
        case full
        /// A request or an answer exceeds the size limit.
        case tooLarge
        /// The history of the revision has been compacted.
        case compacted
        /// Any other failure that a retry would not change.
        case refused
    }

    package var kind: Kind
    /// What happened, for people.
    package var message: String
    /// Whether the requested change may have happened, or may yet happen.
    package var mayHaveHappened: Bool

    package init(_ kind: Kind, _ message: String, mayHaveHappened: Bool = false) {
        self.kind = kind
        self.message = message
        self.mayHaveHappened = mayHaveHappened
    }

    /// The same failure, with the member that reported it.
    func at(_ member: String) -> EtcdFailure {
        EtcdFailure(kind, "\(member): \(message)", mayHaveHappened: mayHaveHappened)
    }
}

extension LogError {
    /// - Parameters:
    ///   - failure: The failure of etcd, or of the connection to it.
    ///   - attempt: What was tried, as the beginning of a sentence.
    init(_ failure: EtcdFailure, _ attempt: String) {
        let (code, advice): (Code, String) =
            switch failure.kind {
            case .unreachable:
                (
                    .unreachable,
                    "Check that a majority of etcd's members is running, and that the addresses "
                        + "are theirs"
                )
            case .foreign: (.unreachable, "Name members of an etcd, version 3.4 or later")
            case .denied, .notEnabled:
                (
                    .denied,
                    "Check that the certificates are valid today, and that the other side trusts "
                        + "their authority. Check the user's password and permissions: the "
                        + "user must be able to read and write all keys below the prefix"
                )
            case .full:
                (
                    .full,
                    "etcd has used up its space. Raise --quota-backend-bytes, or remove what "
                        + "other programs keep in it; then compact its history (etcdctl compact "
                        + "--physical), free the space (etcdctl defrag, on each member), and clear "
                        + "the alarm (etcdctl alarm disarm)"
                )
            case .tooLarge:
                (
                    .failed,
                    "etcd must take requests of 1.5 MiB, as it does unless "
                        + "--max-request-bytes is lower"
                )
            case .compacted, .refused: (.failed, "What etcd itself prints may say more")
            }
        let isUnknown = failure.mayHaveHappened
        self.init(
            isUnknown ? .unknownOutcome : code, "\(attempt) failed: \(failure.message). \(advice).")
    }
}

/// Why one member gave no usable answer. Another member may give one, or the same member later.
struct EtcdFault: Error {
    /// Whether the member may have received the request, so that the change may have happened.
    var mayHaveHappened: Bool
    /// Whether the certificate of one side was refused.
    var isDenied = false
    /// Whether the answer exceeded the size limit.
    var isTooLarge = false
    /// What happened, for people.
    var words: String
}

/// What an answer means for a call.
enum EtcdVerdict {
    case answered(Bytes)
    /// The call ends with this failure.
    case failed(EtcdFailure)
    case passing(EtcdFault)
    case unknownToken

    /// Interprets gRPC's codes, and etcd's messages if a code has several meanings.
    init(_ reply: EtcdReply) {
        let words = reply.message
        switch reply.status {
        case 0: self = .answered(reply.body)
        case 3 where words.contains("authentication failed"), 7:
            self = .failed(EtcdFailure(.denied, words))
        case 3 where words.contains("too large"): self = .failed(EtcdFailure(.tooLarge, words))
        // Users or roles have changed since the token was issued.
        case 3 where words.contains("revision of auth store is old"): self = .unknownToken
        case 3 where reply.wantsUser:
            self = .failed(
                EtcdFailure(.denied, "\(words): it asks for a user; give credentials"))
        case 8 where words.contains("space exceeded"): self = .failed(EtcdFailure(.full, words))
        // Too many requests: etcd did not accept it.
        case 8 where !words.contains("larger than"):
            self = .passing(EtcdFault(mayHaveHappened: false, words: words))
        case 8: self = .failed(EtcdFailure(.tooLarge, words))
        case 9 where words.contains("not enabled"):
            self = .failed(EtcdFailure(.notEnabled, words))
        case 11 where words.contains("compacted"):
            self = .failed(EtcdFailure(.compacted, words))
        case 12:
            self = .failed(EtcdFailure(.foreign, "it has no such interface (\(words))"))
        case 16: self = .unknownToken
        case 3, 5, 6, 9, 11: self = .failed(EtcdFailure(.refused, words))
        default: self = .passing(EtcdFault(mayHaveHappened: true, words: words))
        }
    }

    /// The token in an answer to `authenticate`.
    static func token(in body: Bytes) -> String? {
        guard let fields = try? ProtobufFields(body), fields.has(2) else { return nil }
        return try? String(utf8: fields.bytes(2))
    }
}

/// The state of a call that has no answer yet.
struct EtcdTrial {
    /// How often a token may be unknown before that counts as an ordinary failure.
    private static let tokensMax = 2

    private let memberCount: Int
    /// The last fault of each member.
    private var faults: [String: EtcdFault] = [:]
    private var count = 0
    private var tokenCount = 0
    private(set) var mayHaveHappened = false

    init(memberCount: Int) {
        self.memberCount = memberCount
    }

    /// Whether each member was asked equally often.
    var isRoundOver: Bool { count % memberCount == 0 }

    /// Whether all members have denied access, so that waiting is pointless.
    var areAllDenied: Bool {
        faults.count == memberCount && faults.values.allSatisfy(\.isDenied)
    }

    mutating func note(_ fault: EtcdFault, of member: String) {
        count += 1
        faults[member] = fault
        mayHaveHappened = mayHaveHappened || fault.mayHaveHappened
    }

    /// - Returns: Whether to ask the same member again.
    mutating func countsToken() -> Bool {
        tokenCount += 1
        guard tokenCount > Self.tokensMax else { return true }
        count += 1
        return false
    }

    func failure(within limit: Duration) -> EtcdFailure {
        let words = faults.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value.words)" }
        let said =
            words.isEmpty
            ? "no member accepts the credentials" : words.joined(separator: "; ")
        return EtcdFailure(
            areAllDenied || words.isEmpty ? .denied : .unreachable,
            areAllDenied ? said : "no answer within \(limit) (\(said))",
            mayHaveHappened: mayHaveHappened)
    }
}
