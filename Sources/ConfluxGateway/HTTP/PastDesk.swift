import Conflux
import ConfluxMonitoring
import ConfluxNode
import ConfluxVocabulary
import ConfluxWorker
import Synchronization

/// Makes the past of stores for requests over HTTP: a few at a time.
///
/// The last states that were made are kept. So whoever steps from one number to the next gets the entries between the
/// two applied, and no more.
final class PastDesk: Sendable {
    private struct Content {
        /// How many are being made.
        var count = 0
        var waiting: [(ticket: UInt64, turn: CheckedContinuation<Bool, Never>)] = []
        var lastTicket: UInt64 = 0
        /// The newest last.
        var made: [PastState] = []
    }

    private let reader: PastReader
    /// The states whose code this program has.
    private let known: Set<String>
    private let state = Mutex(Content())

    init(_ reader: PastReader, knowing known: Set<String>) {
        (self.reader, self.known) = (reader, known)
    }

    /// The history is another one: nothing that was made counts any more.
    func forget() { state.withLock { $0.made = [] } }

    /// Answers a request, unless its connection ends first.
    func answer(_ request: PastRequest, of store: any AnyServedStore, _ exchange: HTTPExchange) {
        let replayed = store.replayed
        // One deadline for the wait for a turn, and for all that is read.
        let due = Moment.now.monotonic + request.timeout
        answer(exchange) { () async throws(PastError) in
            try await self.answer(request, replayed, due)
        }
    }

    /// Answers with the newest state that the log keeps of a store that the gateway does not serve, unless its connection
    /// ends first.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - mark: The number above which the state must not be; nil for the newest of all.
    ///   - timeout: How long it may take.
    ///   - exchange: Gets the answer.
    func answerKept(
        of store: StoreName, at mark: SequenceNumber?, _ timeout: Duration, _ exchange: HTTPExchange
    ) {
        answer(exchange) { [self] () async throws(PastError) in
            let kept = try await reader.kept(
                of: store, at: mark, within: min(timeout, GatewayBounds.pastTimeMax))
            let reason =
                known.contains(store.state.text)
                ? "This gateway does not serve \(store)."
                : "This program does not have the code of \(store.state)."
            return .success(
                (mark.map { [.init("at", "\($0)")] } ?? []) + [
                    .init("kept", "\"\(kept.kind)\""), .init("log", "\"\(kept.log)\""),
                    .init("reason", JSONValue.string(reason).description),
                    .init("schemaVersion", "\(kept.version)"),
                    .init("sequence", "\(kept.sequence)"), .init("state", kept.json),
                    .init("store", "\"\(store)\""),
                ])
        }
    }

    private func answer(
        _ exchange: HTTPExchange,
        _ body: @escaping @Sendable () async throws(PastError) -> Answer
    ) {
        let work = Task {
            do throws(CommandFailure) {
                let answer = try await inTurn(body)
                exchange.answer(
                    HTTPAnswer(status: 200, type: "application/json", body: .bytes(answer.bytes())))
            } catch {
                exchange.answer(Problem(error).answer)
            }
        }
        exchange.whenOver { work.cancel() }
    }

    // MARK: Turns

    private func inTurn(
        _ body: () async throws(PastError) -> Answer
    ) async throws(CommandFailure) -> Answer {
        guard await begin() else {
            throw CommandFailure(
                .rejected, code: "tooManyRequests",
                "\(GatewayBounds.pastsWaitingMax) requests for the past of stores wait for their turn. Ask again later."
            )
        }
        defer { end() }
        return try await failing { () async throws(PastError) in try await body() }
    }

    /// Waits for a turn.
    ///
    /// - Returns: Whether it has come. If it was cancelled, it comes at once, and its work ends at once.
    private func begin() async -> Bool {
        let ticket = state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { turn in
                let now: Bool? = state.withLock { state in
                    if state.count < GatewayBounds.pastsMax {
                        state.count += 1
                        return true
                    }
                    guard state.waiting.count < GatewayBounds.pastsWaitingMax, !Task.isCancelled
                    else { return false }
                    state.waiting.append((ticket, turn))
                    return nil
                }
                if let now { turn.resume(returning: now) }
            }
        } onCancel: {
            let turn = state.withLock { state in
                state.waiting.firstIndex { $0.ticket == ticket }.map {
                    state.waiting.remove(at: $0).turn
                }
            }
            turn?.resume(returning: false)
        }
    }

    private func end() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard !state.waiting.isEmpty else {
                state.count -= 1
                return nil
            }
            return state.waiting.removeFirst().turn
        }
        next?.resume(returning: true)
    }

    // MARK: Answers

    private func answer(
        _ request: PastRequest, _ state: ReplayedState, _ due: Duration
    ) async throws(PastError) -> Answer {
        let store = Answer.Member("store", "\"\(request.store)\"")
        switch request.verb {
        case .state(let mark, let without):
            let at =
                if let mark { mark } else {
                    try await reader.entries(
                        of: state, request.store, after: nil, before: nil, limit: 1,
                        within: left(until: due)
                    ).newest
                }
            let past = try await states(request, state, at: [at], without, due)[0]
            return .success([
                .init("at", "\(at)"), .init("epoch", past.epoch.map { "\($0)" } ?? "null"),
                .init("log", "\"\(past.log)\""), .init("sequence", "\(past.sequence)"),
                .init("state", past.json), store,
            ])
        case .difference(let from, let to, let without):
            let pair: [PastState]
            if let from {
                let states = try await states(
                    request, state, at: [min(from, to), max(from, to)], without, due)
                pair = from <= to ? states : states.reversed()
            } else {
                // Without the action first: if there is none, nothing else need be made.
                let other = try await states(request, state, at: [to], without, due)
                pair = try await states(request, state, at: [to], nil, due) + other
            }
            return .success([
                .init("changes", try Self.patch(pair[0], pair[1])),
                .init("from", "\(from ?? to)"), store, .init("to", "\(to)"),
            ])
        case .entries(let after, let before, let limit):
            let past = try await reader.entries(
                of: state, request.store, after: after, before: after == nil ? before : nil,
                limit: limit, within: left(until: due))
            let entries = past.entries.filter { $0.sequence < before ?? .init(UInt64.max) }
            return .success([
                .init("entries", Self.list(entries)), .init("floor", "\(past.floor)"),
                .init("newest", "\(past.newest)"), store,
            ])
        }
    }

    private func left(until due: Duration) -> Duration {
        max(.zero, due - Moment.now.monotonic)
    }

    private func states(
        _ request: PastRequest, _ replayed: ReplayedState, at marks: [SequenceNumber],
        _ without: SequenceNumber?, _ due: Duration
    ) async throws(PastError) -> [PastState] {
        let made = state.withLock { $0.made.filter { $0.store == request.store } }
        let states = try await reader.states(
            of: replayed, request.store, at: marks, without: without, near: made,
            within: left(until: due))
        state.withLock { state in
            for new in states {
                state.made.removeAll {
                    $0.store == new.store && $0.at == new.at && $0.without == new.without
                }
                state.made.append(new)
            }
            while state.made.count > GatewayBounds.pastsKept
                || state.made.reduce(0, { $0 + $1.json.count }) > GatewayBounds.pastBytesKept
            { state.made.removeFirst() }
        }
        return states
    }

    private static func patch(
        _ former: PastState, _ later: PastState
    ) throws(PastError) -> [UInt8] {
        do throws(CodingFailure) {
            return try JSONPatch.bytes(
                from: JSONValue(json: former.json), to: JSONValue(json: later.json))
        } catch {
            throw PastError.unreadable(later.at, error)
        }
    }

    private static func list(_ entries: [PastEntries.Entry]) -> [UInt8] {
        var bytes: [UInt8] = [UInt8(ascii: "[")]
        for entry in entries {
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            bytes += #"{"action":"#.utf8
            bytes += entry.action ?? Array("null".utf8)
            bytes += #","origin":"\#(entry.origin)","outcome":"#.utf8
            bytes += (entry.refusal == nil ? #""applied""# : #""refused""#).utf8
            if let key = entry.principal { bytes += #","principal":"\#(key)""#.utf8 }
            if let reason = entry.refusal {
                bytes += #","reason":\#(JSONValue.string(reason))"#.utf8
            }
            bytes +=
                #","sequence":\#(entry.sequence),"timestamp":"\#(entry.timestamp.iso8601)"}"#
                .utf8
        }
        bytes.append(UInt8(ascii: "]"))
        return bytes
    }
}
