import Conflux
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the programs report over HTTP.
enum Scrape {
    /// Gets a path at an address.
    static func get(
        _ address: JSONValue?, _ path: String, token: String? = nil
    ) async throws -> (status: Int, body: String) {
        let place = try #require(address?.string)
        var request = URLRequest(
            url: try #require(URL(string: "http://\(place)\(path)")), timeoutInterval: 30)
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        let (data, response) = try await URLSession.shared.data(for: request)
        let status = try #require(response as? HTTPURLResponse).statusCode
        return (status, String(decoding: data, as: UTF8.self))
    }

    /// Polls the metrics until they match, since nothing announces a change.
    static func metrics(
        of ready: JSONValue, until isWanted: (String) -> Bool
    ) async throws -> String {
        let deadline = ContinuousClock.now + .seconds(60)
        while true {
            let text = try await get(ready[key: "http"], "/metrics").body
            if isWanted(text) { return text }
            try #require(ContinuousClock.now < deadline, "not so in time:\n\(text)")
        }
    }

    static func value(_ name: String, in text: String) -> Double? {
        text.split(separator: "\n").first { $0.hasPrefix("\(name) ") }
            .flatMap { Double($0.dropFirst(name.count + 1)) }
    }
}
