import CHTTP
import ConfluxNode
import Foundation
import InventoryModel

/// Turns requests into calls of a shop:
///
///     POST /deliveries/ITEM/AMOUNT      POST /orders/ID/ITEM/AMOUNT
///
/// The answer is the number of the entry in the log, or the reason why nothing changed.
struct FrontEnd: Sendable {
    /// The answer to a request.
    struct Answer: Sendable {
        let status: UInt32
        let text: String
    }

    let shop: Shop

    /// Does what a request asks for.
    func answer(_ method: String, _ path: String) async -> Answer {
        guard method == "POST" else { return Answer(status: 405, text: "only POST") }
        let parts = path.split(separator: "/").map { String($0).removingPercentEncoding ?? "" }
        do {
            let receipt: Receipt?
            if parts.count == 3, parts[0] == "deliveries", let amount = Int(parts[2]) {
                receipt = try await shop.deliver(parts[1], amount)
            } else if parts.count == 4, parts[0] == "orders", let amount = Int(parts[3]) {
                receipt = try await shop.take(Order(item: parts[2], amount: amount), id: parts[1])
            } else {
                return Answer(
                    status: 404, text: "POST /deliveries/ITEM/AMOUNT or /orders/ID/ITEM/AMOUNT")
            }
            return Answer(
                status: 200, text: receipt.map { "entry \($0.sequence)" } ?? "taken before")
        } catch {
            return Answer(status: Self.status(of: error), text: "\(error)")
        }
    }

    private static func status(of error: any Error) -> UInt32 {
        if error is IDTaken { return 409 }
        // Nothing was sent.
        guard let error = error as? DispatchError else { return 503 }
        return switch (error.code, error.receipt) {
        case (.refused, _): 409
        // It is in the log, and not applied here yet.
        case (_, .some): 202
        case (.outcomeUnknown, _), (.timedOut, _): 504
        default: 503
        }
    }
}

/// Nobody can listen at the port.
struct PortInUse: Error, CustomStringConvertible {
    let port: UInt16

    var description: String { "nobody can listen at port \(port); set PORT" }
}

/// Serves a front end over HTTP, by libmicrohttpd.
final class HTTPServer {
    private let daemon: OpaquePointer
    /// The port where it listens.
    let port: UInt16

    /// The state of a request. The server's thread makes it, and a task completes it while the connection is
    /// suspended.
    // Sendable: so it has only one owner at a time.
    private final class Request: @unchecked Sendable {
        let connection: OpaquePointer
        var answer: FrontEnd.Answer?

        init(_ connection: OpaquePointer) {
            self.connection = connection
        }
    }

    /// Listens on a port of the loopback interface.
    ///
    /// - Parameters:
    ///   - port: The port; 0 for one that is free.
    ///   - frontEnd: Answers the requests.
    /// - Throws: ``PortInUse``.
    init(port: UInt16, _ frontEnd: FrontEnd) throws(PortInUse) {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let context = Unmanaged.passRetained(frontEnd as AnyObject)
        let daemon = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                inventory_http_start($0, Self.handle, context.toOpaque())
            }
        }
        guard let daemon else {
            context.release()
            throw PortInUse(port: port)
        }
        self.daemon = daemon
        self.port = inventory_http_port(daemon)
    }

    /// Is called when the headers of a request have arrived, for each part of its body, and again when the connection
    /// is resumed.
    private static let handle: MHD_AccessHandlerCallback = {
        context, connection, path, method, _, _, bodySize, state in
        guard let context, let connection, let path, let method, let state, let bodySize else {
            return inventory_http_no()
        }
        guard let known = state.pointee else {
            let request = Request(connection)
            state.pointee = Unmanaged.passRetained(request).toOpaque()
            return inventory_http_yes()
        }
        if bodySize.pointee > 0 {
            // The body is not used.
            bodySize.pointee = 0
            return inventory_http_yes()
        }
        let request = Unmanaged<Request>.fromOpaque(known).takeUnretainedValue()
        if let answer = request.answer {
            Unmanaged<Request>.fromOpaque(known).release()
            state.pointee = nil
            return respond(answer, on: connection)
        }
        guard
            let frontEnd = Unmanaged<AnyObject>.fromOpaque(context).takeUnretainedValue()
                as? FrontEnd
        else { return inventory_http_no() }
        let (verb, target) = (String(cString: method), String(cString: path))
        MHD_suspend_connection(connection)
        Task {
            request.answer = await frontEnd.answer(verb, target)
            MHD_resume_connection(request.connection)
        }
        return inventory_http_yes()
    }

    private static func respond(
        _ answer: FrontEnd.Answer, on connection: OpaquePointer
    ) -> MHD_Result {
        let body = Array((answer.text + "\n").utf8)
        guard let response = inventory_http_response(body, body.count) else {
            return inventory_http_no()
        }
        defer { MHD_destroy_response(response) }
        return MHD_queue_response(connection, answer.status, response)
    }
}
