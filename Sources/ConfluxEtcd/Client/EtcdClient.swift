import ConfluxThreads
import ConfluxVocabulary

/// The methods of etcd that this client calls.
enum EtcdMethod: String {
    case transact = "/etcdserverpb.KV/Txn"
    case compact = "/etcdserverpb.KV/Compact"
    case authenticate = "/etcdserverpb.Auth/Authenticate"
    case status = "/etcdserverpb.Maintenance/Status"
    case defragment = "/etcdserverpb.Maintenance/Defragment"
    case alarm = "/etcdserverpb.Maintenance/Alarm"
    case watch = "/etcdserverpb.Watch/Watch"
}

/// Asks the members of an etcd cluster, one after the other until one answers, within a deadline.
///
/// A request whose answer is lost is sent again. So a request that changes something must be safe to repeat:
/// it compares what it changes, and its answer tells whether the first attempt took effect.
///
/// Confined to one thread at a time.
final class EtcdClient: EtcdStore {
    private let settings: EtcdLogSettings
    /// The time limits for one member, and for all of them together.
    private var answerMax: Duration
    private var callMax: Duration
    private let transfer: EtcdTransfer
    /// The member that answered last.
    private var current = 0
    /// The token of the authenticated user; nil before authentication, or without a user.
    private(set) var token: String?
    /// Whether authentication is not enabled, although there are credentials.
    private var isOpenToAll = false
    /// The member to ask next.
    var member: String { settings.address.members[current] }
    private let begun = ContinuousClock.now
    var now: Duration { ContinuousClock.now - begun }
    /// Never signalled: waiting for it is a pause.
    private let never = Latch()

    /// The first pause after every member has failed. It doubles up to half a second.
    private static let pauseMin = Duration.milliseconds(25)
    private static let pauseMax = Duration.milliseconds(500)
    /// How long a member may take to report its space, and to rewrite its file.
    private static let statusMax = Duration.milliseconds(500)
    private static let defragmentMax = Duration.seconds(45)

    init(_ settings: EtcdLogSettings) throws(EtcdFailure) {
        self.settings = settings
        answerMax = settings.answerMax
        callMax = settings.callMax
        do throws(EtcdFault) {
            transfer = try EtcdTransfer(
                settings.address.isSecure ? settings.security : nil, endedBy: settings.calls)
        } catch {
            throw EtcdFailure(.unreachable, error.words)
        }
        // A random start, so that programs spread over the members.
        current = Int.random(in: settings.address.members.indices)
    }

    func limit(answer: Duration, call: Duration) {
        answerMax = answer
        callMax = call
    }

    /// Carries out a transaction.
    ///
    /// - Returns: The answer. If the transaction was applied but its answer was lost, `succeeded` is false:
    ///   what the failure branch reads shows that it was applied.
    /// - Throws: ``EtcdFailure``.
    func transact(_ transaction: EtcdTransaction) throws(EtcdFailure) -> EtcdAnswer {
        do throws(EtcdFailure) {
            return try carryOut(transaction)
        } catch {
            guard error.kind == .full, !transaction.failure.isEmpty else { throw error }
            // etcd returns the same error for a transaction that it has applied and that filled its space.
            var found: EtcdAnswer
            do throws(EtcdFailure) {
                found = try carryOut(EtcdTransaction(success: transaction.failure))
            } catch {
                throw EtcdFailure(error.kind, error.message, mayHaveHappened: true)
            }
            guard transaction.stands(in: found) else { throw error }
            found.succeeded = false
            return found
        }
    }

    private func carryOut(_ transaction: EtcdTransaction) throws(EtcdFailure) -> EtcdAnswer {
        let body = try call(.transact, transaction.encoded())
        do throws(ProtobufFields.Malformed) {
            let answer = try EtcdAnswer(body)
            let branch = answer.succeeded ? transaction.success : transaction.failure
            guard answer.pairs.count == branch.count else { throw ProtobufFields.Malformed() }
            return answer
        } catch {
            throw EtcdFailure(.foreign, "its answer is not etcd's", mayHaveHappened: true)
        }
    }

    /// Compacts the history of values before a revision.
    ///
    /// - Parameters:
    ///   - revision: The first revision whose values stay.
    ///   - isAwaited: Whether to wait until the space is free.
    /// - Throws: ``EtcdFailure``.
    func compact(to revision: UInt64, isAwaited: Bool) throws(EtcdFailure) {
        var writer = ProtobufWriter()
        writer.put(revision, as: 1)
        writer.put(isAwaited, as: 2)
        do throws(EtcdFailure) {
            _ = try call(.compact, writer.bytes)
        } catch {
            // Another program has compacted it already.
            if error.kind == .compacted { return }
            throw error
        }
    }

    func nextMember() -> EtcdMember? {
        guard let body = try? call(.status, []), let status = try? EtcdStatus(body) else {
            return nil
        }
        return EtcdMember(member, status)
    }

    func members() -> [EtcdMember] {
        settings.address.members.compactMap { member in
            guard let body = try? ask(.status, [], of: member, within: Self.statusMax),
                let status = try? EtcdStatus(body)
            else { return nil }
            return EtcdMember(member, status)
        }
    }

    func defragment(_ member: String) throws(EtcdFailure) {
        _ = try ask(.defragment, [], of: member, within: Self.defragmentMax)
    }

    func disarm() throws(EtcdFailure) {
        var members: [UInt64] = []
        let answer = try alarm(.get, of: 0)
        do throws(ProtobufFields.Malformed) {
            for alarm in try ProtobufFields(answer).all(2) {
                let fields = try ProtobufFields(alarm)
                // 1 is NOSPACE.
                if fields.number(2) == 1 { members.append(fields.number(1)) }
            }
        } catch {
            throw EtcdFailure(.foreign, "its answer is not etcd's")
        }
        for member in members { _ = try alarm(.deactivate, of: member) }
    }

    private enum AlarmRequest: UInt64 { case get = 0, deactivate = 2 }

    private func alarm(_ request: AlarmRequest, of member: UInt64) throws(EtcdFailure) -> Bytes {
        var writer = ProtobufWriter()
        writer.put(request.rawValue, as: 1)
        writer.put(member, as: 2)
        // 1 is NOSPACE.
        writer.put(1, as: 3)
        return try call(.alarm, writer.bytes)
    }

    /// Asks one member, and no other.
    private func ask(
        _ method: EtcdMethod, _ message: [UInt8], of member: String, within limit: Duration
    ) throws(EtcdFailure) -> Bytes {
        var isFirst = true
        while true {
            switch attempt(method, of: member, message, within: limit) {
            case .answered(let body): return body
            case .failed(let failure): throw failure.at(member)
            case .passing(let fault):
                throw EtcdFailure(.unreachable, "\(member): \(fault.words)")
            case .unknownToken:
                token = nil
                isOpenToAll = false
                guard isFirst else { throw EtcdFailure(.denied, "\(member) knows no such user") }
                isFirst = false
            }
        }
    }

    // MARK: One call

    private func call(_ method: EtcdMethod, _ message: [UInt8]) throws(EtcdFailure) -> Bytes {
        let clock = ContinuousClock()
        let deadline = clock.now + callMax
        let members = settings.address.members
        var trial = EtcdTrial(memberCount: members.count)
        var pause = Self.pauseMin
        var answer = answerMax
        while true {
            let left = deadline - clock.now
            guard left > .zero, settings.calls?.areOver != true else {
                throw trial.failure(within: callMax)
            }
            let member = members[current]
            switch attempt(method, of: member, message, within: min(left, answer)) {
            case .answered(let body): return body
            case .failed(var failure):
                failure.mayHaveHappened = failure.mayHaveHappened || trial.mayHaveHappened
                throw failure.at(member)
            case .passing(let fault): trial.note(fault, of: member)
            case .unknownToken:
                token = nil
                isOpenToAll = false
                // If the token has expired, ask the same member again. If it never accepts a token, go on to
                // the next one.
                if trial.countsToken() { continue }
            }
            if trial.areAllDenied { throw trial.failure(within: callMax) }
            current = (current + 1) % members.count
            guard trial.isRoundOver else { continue }
            // All members may be slow.
            answer = min(answer * 2, max(answerMax, settings.answerMax))
            let rest = max(.zero, min(pause, deadline - clock.now))
            never.wait(for: rest)
            pause = min(pause * 2, Self.pauseMax)
        }
    }

    private func attempt(
        _ method: EtcdMethod, of member: String, _ message: [UInt8], within limit: Duration
    ) -> EtcdVerdict {
        do throws(EtcdFault) {
            if let credentials = settings.credentials, token == nil, !isOpenToAll {
                switch authenticate(credentials, at: member, within: limit) {
                case .answered(let answer): token = EtcdVerdict.token(in: answer)
                case .failed(let failure) where failure.kind == .notEnabled: isOpenToAll = true
                case let verdict: return verdict
                }
            }
            let reply = try transfer.ask(
                method.rawValue, of: member, message, token: token, within: limit)
            // Authentication was enabled meanwhile.
            if settings.credentials != nil, token == nil, reply.wantsUser { return .unknownToken }
            return EtcdVerdict(reply)
        } catch {
            if error.isTooLarge {
                return .failed(EtcdFailure(.tooLarge, "its answer is too large"))
            }
            return .passing(error)
        }
    }

    private func authenticate(
        _ credentials: EtcdCredentials, at member: String, within limit: Duration
    ) -> EtcdVerdict {
        var writer = ProtobufWriter()
        writer.put(credentials.user, as: 1)
        writer.put(credentials.password, as: 2)
        var verdict: EtcdVerdict
        do throws(EtcdFault) {
            verdict = EtcdVerdict(
                try transfer.ask(
                    EtcdMethod.authenticate.rawValue, of: member, writer.bytes, token: nil,
                    within: limit))
        } catch {
            verdict = .passing(error)
        }
        // The actual request has not been sent yet.
        if case .passing(var fault) = verdict {
            fault.mayHaveHappened = false
            verdict = .passing(fault)
        }
        return verdict
    }
}
