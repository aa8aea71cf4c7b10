import Conflux
import Foundation
import Spawning
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A client of a gateway's API over HTTP.
struct HTTPPeer: Sendable {
    let address: String
    var token: String?

    /// The answer to a request.
    struct Answer {
        let status: Int
        let type: String
        let json: JSONValue
        /// The entity tag.
        let tag: String?

        /// The code of a problem.
        var code: String? { json[key: "code"]?.string }
    }

    func request(
        _ method: String, _ path: String, body: String? = nil, _ headers: [String: String] = [:]
    ) throws -> URLRequest {
        var request = URLRequest(
            url: try #require(URL(string: "http://\(address)/api/v1\(path)")), timeoutInterval: 60)
        request.httpMethod = method
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        if let body {
            request.httpBody = Data(body.utf8)
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        }
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }

    func ask(
        _ method: String, _ path: String, body: String? = nil, _ headers: [String: String] = [:]
    ) async throws -> Answer {
        let (data, response) = try await URLSession.shared.data(
            for: try request(method, path, body: body, headers))
        let http = try #require(response as? HTTPURLResponse)
        return Answer(
            status: http.statusCode,
            type: http.value(forHTTPHeaderField: "Content-Type") ?? "",
            json: try JSONValue(json: Array(data)),
            tag: http.value(forHTTPHeaderField: "ETag"))
    }

    /// Dispatches an action.
    ///
    /// - Returns: The number of the receipt.
    func dispatch(_ action: String, to store: String, key: String? = nil) async throws -> UInt64 {
        let answer = try await ask(
            "POST", "/stores/\(store)/actions", body: action,
            key.map { ["Idempotency-Key": $0] } ?? [:])
        try #require(answer.status == 200, "\(answer)")
        return try #require(answer.json[key: "receipt"]?[key: "sequence"]?.number)
    }
}

/// Reads server-sent events.
// Sendable: the session's queue alone calls the delegate's functions.
final class EventReader: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    /// An event.
    struct Event: Sendable {
        let id: String
        let name: String
        let data: JSONValue

        var body: String { data[key: "body"]?.description ?? "" }
        var sequence: UInt64? { data[key: "head"]?[key: "sequence"]?.number }
        var previous: UInt64? { data[key: "head"]?[key: "previous"]?.number }
    }

    /// The events that nobody has taken yet; nil at the end.
    private let events = Mutex<[Event?]>([])
    private let arrived = DispatchSemaphore(value: 0)
    private var text = ""
    private var session: URLSession?

    init(_ request: URLRequest) {
        super.init()
        let session = URLSession(configuration: .ephemeral, delegate: self, delegateQueue: nil)
        self.session = session
        session.dataTask(with: request).resume()
    }

    /// Ends the connection.
    func end() { session?.invalidateAndCancel() }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        text += String(decoding: data, as: UTF8.self)
        while let end = text.range(of: "\n\n") {
            let lines = text[..<end.lowerBound].split(separator: "\n")
            text = String(text[end.upperBound...])
            func field(_ name: String) -> String {
                lines.first { $0.hasPrefix("\(name): ") }.map {
                    String($0.dropFirst(name.count + 2))
                }
                    ?? ""
            }
            // A comment shows only that the connection stands.
            guard let data = try? JSONValue(json: Array(field("data").utf8)) else { continue }
            add(Event(id: field("id"), name: field("event"), data: data))
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) { add(nil) }

    private func add(_ event: Event?) {
        events.withLock { $0.append(event) }
        arrived.signal()
    }

    /// Waits for the next event.
    ///
    /// - Returns: nil at the end of the stream.
    /// - Throws: ``Failure`` if none comes within 20 seconds.
    func next() async throws -> Event? {
        let isThere = await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [arrived] in
                continuation.resume(returning: arrived.wait(timeout: .now() + 20) == .success)
            }
        }
        guard isThere else { throw Failure("no event came") }
        return events.withLock { $0.removeFirst() }
    }
}
