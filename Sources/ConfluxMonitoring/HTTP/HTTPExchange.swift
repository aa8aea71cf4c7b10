import CMicroHTTPD
import Synchronization

/// A request that is being answered. Safe on any thread.
///
/// While the server waits for an answer, or for the next part of a stream, libmicrohttpd has the connection suspended.
///
/// *Invariants*: a connection is suspended and resumed under the lock, and alternately. Nothing touches the connection
/// once the request is over.
// Sendable: the connection is used under the lock, and while the request is not over.
package final class HTTPExchange: @unchecked Sendable {
    private struct State {
        var body: [UInt8] = []
        var isTooLong = false
        var hasBegun = false
        var answer: HTTPAnswer?
        var isSuspended = false
        /// Whether the stream is to be asked again.
        var isAwake = false
        /// Whether nothing more is sent.
        var isEnding = false
        var isOver = false
        /// What to do once it is over.
        var endings: [@Sendable () -> Void] = []
    }

    private let connection: OpaquePointer
    private let bodyBytesMax: Int
    private let tooLong: @Sendable () -> HTTPAnswer
    private let work: @Sendable ([UInt8], HTTPExchange) -> Void
    private let state = Mutex(State())
    /// What is left of the body, or of the stream's last part, in reverse order. Only the server's thread uses it.
    private var rest: [ArraySlice<UInt8>] = []

    init(
        _ connection: OpaquePointer, bodyBytesMax: Int,
        tooLong: @escaping @Sendable () -> HTTPAnswer,
        _ work: @escaping @Sendable ([UInt8], HTTPExchange) -> Void
    ) {
        self.connection = connection
        self.bodyBytesMax = bodyBytesMax
        self.tooLong = tooLong
        self.work = work
    }

    // MARK: For the service

    /// Answers the request. Only the first answer counts.
    package func answer(_ answer: HTTPAnswer) {
        state.withLock { state in
            guard state.answer == nil, !state.isOver else { return }
            state.answer = answer
            resume(&state)
        }
    }

    /// Has the stream asked again for its next part.
    package func wake() {
        state.withLock { state in
            state.isAwake = true
            resume(&state)
        }
    }

    /// Calls a function once the request is over.
    package func whenOver(_ body: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            if !state.isOver { state.endings.append(body) }
            return state.isOver
        }
        if isOver { body() }
    }

    private func resume(_ state: inout State) {
        guard state.isSuspended, !state.isOver else { return }
        state.isSuspended = false
        MHD_resume_connection(connection)
    }

    private func suspend(_ state: inout State) {
        state.isSuspended = true
        MHD_suspend_connection(connection)
    }

    // MARK: For the server

    /// Takes a part of the body.
    func take(_ bytes: UnsafeBufferPointer<UInt8>) {
        state.withLock { state in
            state.isTooLong = state.isTooLong || state.body.count + bytes.count > bodyBytesMax
            if state.isTooLong { state.body = [] } else { state.body += bytes }
        }
    }

    /// What the server does next.
    enum Step {
        case answer(HTTPAnswer)
        /// The connection is suspended until there is an answer.
        case wait
        /// The connection ends without an answer: the server ends, and nobody knows what became of the request.
        case abandon
    }

    /// The body has arrived, or there may be an answer.
    func proceed() -> Step {
        let body: [UInt8]? = state.withLock { state in
            guard !state.hasBegun, !state.isEnding else { return nil }
            if state.isTooLong { state.answer = tooLong() }
            state.hasBegun = true
            defer { state.body = [] }
            return state.answer == nil ? state.body : nil
        }
        if let body { work(body, self) }
        return state.withLock { state in
            if let answer = state.answer { return .answer(answer) }
            if state.isEnding { return .abandon }
            suspend(&state)
            return .wait
        }
    }

    /// Begins a body that is there.
    func begin(_ body: [UInt8]) { rest = body.isEmpty ? [] : [body[...]] }

    /// Reads the body, or the stream.
    ///
    /// - Returns: How many bytes were read; 0 if there are none, and the connection is suspended; nil at the end.
    func read(_ stream: (any HTTPStream)?, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        while rest.isEmpty {
            guard let stream else { return nil }
            let isEnding = state.withLock { state in
                state.isAwake = false
                return state.isEnding
            }
            if isEnding { return nil }
            switch stream.next() {
            case .bytes(let pieces): rest = pieces.reversed().map { $0[...] }.filter { !$0.isEmpty }
            case .end: return nil
            case .none:
                let isSuspended = state.withLock { state in
                    guard !state.isAwake else { return false }
                    suspend(&state)
                    return true
                }
                if isSuspended { return 0 }
            }
        }
        var count = 0
        while count < buffer.count, var piece = rest.popLast() {
            let part = piece.prefix(buffer.count - count)
            part.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: $0)
            }
            count += part.count
            piece = piece.dropFirst(part.count)
            if !piece.isEmpty { rest.append(piece) }
        }
        return count
    }

    /// The server, or the connection, ends.
    func stop() {
        state.withLock { $0.isEnding = true }
        wake()
    }

    /// The request is over. What it has kept is released.
    func complete() {
        rest = []
        let endings = state.withLock { state in
            state.isOver = true
            (state.body, state.answer) = ([], nil)
            return exchange(&state.endings, with: [])
        }
        for ending in endings { ending() }
    }
}
