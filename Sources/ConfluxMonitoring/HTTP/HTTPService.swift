/// What a server serves. The server calls it on its thread, which must not wait.
package protocol HTTPService: Sendable {
    /// Decides about a request, of which the headers have arrived.
    ///
    /// - Parameter head: The request, without its body.
    /// - Returns: What becomes of it.
    func decide(_ head: HTTPHead) -> HTTPDecision
}

/// A request, without its body.
package struct HTTPHead: Sendable {
    /// The method, as it was sent: `GET`.
    package let method: String
    /// The path, as it was sent: with its escapes, and without what is behind a `?`.
    package let path: String
    /// What is behind the `?`, as it was sent.
    package let query: [(name: String, value: String)]
    /// The headers. Names are in lower case; values of one name are joined by commas.
    package let headers: [String: String]
}

/// What becomes of a request.
package enum HTTPDecision {
    /// It is answered at once. If it has a body, that is not read, and the connection ends.
    case answer(HTTPAnswer)
    /// Its body is read, and given to a function, which sees to it that the request is answered. If it is longer,
    /// `tooLong` answers instead.
    case take(
        bodyBytesMax: Int, tooLong: @Sendable () -> HTTPAnswer,
        @Sendable ([UInt8], HTTPExchange) -> Void)
}

/// The answer to a request.
package struct HTTPAnswer: Sendable {
    /// What follows the headers.
    package enum Body: Sendable {
        case bytes([UInt8])
        case stream(any HTTPStream)
    }

    package let status: UInt32
    package var headers: [(name: String, value: String)]
    package let body: Body
    /// Whether the request had the token, if one is needed.
    var isForAdmitted: Bool { status != 401 }

    /// Makes an answer.
    ///
    /// - Parameters:
    ///   - status: The status, such as 200.
    ///   - type: The media type of the body; nil for none.
    ///   - headers: Further headers.
    ///   - body: What follows the headers.
    package init(
        status: UInt32, type: String?, headers: [(name: String, value: String)] = [], body: Body
    ) {
        self.status = status
        self.headers = type.map { [("Content-Type", $0)] } ?? []
        self.headers += [("Cache-Control", "no-store")] + headers
        self.body = body
    }
}

/// A body that goes on for as long as somebody reads it. Only one thread uses it at a time.
package protocol HTTPStream: AnyObject, Sendable {
    /// Takes what comes next. It must not wait.
    func next() -> HTTPPart
}

/// A part of a stream.
package enum HTTPPart {
    /// What comes next, in pieces that are not copied.
    case bytes([[UInt8]])
    /// There is nothing now. ``HTTPExchange/wake()`` has the stream asked again.
    case none
    case end
}
