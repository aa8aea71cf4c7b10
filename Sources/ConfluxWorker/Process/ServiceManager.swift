import ConfluxSystem
import Dispatch
import Foundation

/// Tells the service manager that started this process, such as systemd, about its status.
///
/// The protocol is that of `sd_notify(3)`: each message is one datagram to the socket that the
/// variable `NOTIFY_SOCKET` names. This process sends `READY=1` once it serves, and `STOPPING=1`
/// once it ends.
///
/// If `WATCHDOG_USEC` is set, the process sends `WATCHDOG=1` at once, and then at intervals of half
/// that time. Before each message, a *probe* must pass through the main threads of the process, one
/// after the other: each thread takes the probe from its own queue of work. A thread that hangs, or
/// that one piece of work occupies for too long, does not pass the probe on. Then the manager hears
/// nothing, and ends the process. So one piece of work may occupy a main thread for at most half of
/// the watchdog's time. If it takes longer than the whole time, the process is always ended.
// Sendable: its variables are confined to its queue.
package final class ServiceManager: @unchecked Sendable {
    /// Sends a function through the main threads of a process. The last one calls it.
    package typealias Probe = @Sendable (_ passed: @escaping @Sendable () -> Void) -> Void

    /// How long a message may wait for the manager.
    private static let sendPatience = timeval(tv_sec: 1, tv_usec: 0)
    /// The valid times of a watchdog, in microseconds: a millisecond to a year.
    private static let watchdogRange = 1_000...31_536_000_000_000

    private let address: SocketAddress
    /// Half of the watchdog's time; nil without a watchdog.
    private let interval: DispatchTimeInterval?
    /// Sends the messages in order, so that no main thread waits for the manager.
    private let queue = DispatchQueue(label: "conflux-notify")
    private let diagnostics: Diagnostics
    private var isReady = false
    private var isStopping = false
    /// Whether a probe is running. *Invariant*: there is never a second one.
    private var isProbing = false
    private var timer: (any DispatchSourceTimer)?

    /// Finds the service manager of this process.
    ///
    /// - Parameters:
    ///   - variables: The process's environment.
    ///   - diagnostics: Gets a note if a message could not be sent.
    /// - Returns: nil if no manager expects messages.
    /// - Throws: `usage` if a variable of the manager is invalid.
    package static func find(
        in variables: [String: String] = ProcessInput.variables,
        _ diagnostics: Diagnostics
    ) throws(CommandFailure) -> ServiceManager? {
        guard let path = variables["NOTIFY_SOCKET"], !path.isEmpty else { return nil }
        guard let address = SocketAddress(path) else {
            throw CommandFailure(
                .usage, code: "usage",
                "NOTIFY_SOCKET is '\(path)'. It must be an absolute path or '@' and a name, of at most "
                    + "\(SocketAddress.bytesMax) bytes. The service manager sets it; unset it elsewhere."
            )
        }
        return ServiceManager(address, try interval(variables), diagnostics)
    }

    private static func interval(
        _ variables: [String: String]
    ) throws(CommandFailure) -> DispatchTimeInterval? {
        guard let text = variables["WATCHDOG_USEC"], !text.isEmpty else { return nil }
        // The watchdog is for another process, which started this one.
        if let process = variables["WATCHDOG_PID"], process != "\(getpid())" { return nil }
        guard let microseconds = Int(text), watchdogRange.contains(microseconds) else {
            throw CommandFailure(
                .usage, code: "usage",
                "WATCHDOG_USEC is '\(text)'. It must be a number of microseconds from "
                    + "\(watchdogRange.lowerBound) to \(watchdogRange.upperBound). The service manager "
                    + "sets it; unset it elsewhere.")
        }
        return .microseconds(microseconds / 2)
    }

    private init(
        _ address: SocketAddress, _ interval: DispatchTimeInterval?, _ diagnostics: Diagnostics
    ) {
        self.address = address
        self.interval = interval
        self.diagnostics = diagnostics
    }

    /// Reports that the process serves, and starts the watchdog. Only the first call has an effect.
    ///
    /// - Parameter probe: Sends a function through the main threads.
    package func ready(probing probe: @escaping Probe) {
        queue.async {
            guard !self.isReady, !self.isStopping else { return }
            self.isReady = true
            self.send("READY=1")
            if let interval = self.interval { self.check(probe, every: interval) }
        }
    }

    /// Reports that the process ends, and waits for a second at most until the manager has the message. Only
    /// the first call has an effect.
    package func stopping() {
        queue.sync {
            guard !isStopping else { return }
            isStopping = true
            timer?.cancel()
            timer = nil
            send("STOPPING=1")
        }
    }

    private func check(_ probe: @escaping Probe, every interval: DispatchTimeInterval) {
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler { [weak self] in
            guard let self, !isProbing else { return }
            isProbing = true
            // Called on a main thread.
            probe { self.queue.async { self.passed() } }
        }
        timer.schedule(deadline: .now(), repeating: interval)
        timer.resume()
        self.timer = timer
    }

    private func passed() {
        isProbing = false
        if !isStopping { send("WATCHDOG=1") }
    }

    private func send(_ message: String) {
        let number = address.send(message, patience: Self.sendPatience)
        guard number != 0 else { return }
        let reason = SystemFailure(number, at: address.text).reason(
            advice: "Check NOTIFY_SOCKET, and the service manager.")
        diagnostics.note(
            "\(message) could not be sent to the service manager at \(address.text): \(reason)")
    }
}

/// The address of a datagram socket: a path, or an abstract name, which begins with `@` and exists
/// only on Linux.
private struct SocketAddress: Sendable {
    /// The path, or `@` and the name.
    let text: String
    private let name: [UInt8]
    static let bytesMax = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// - Returns: nil for any other text.
    init?(_ text: String) {
        guard text.utf8.count <= Self.bytesMax, text.utf8.count > 1 else { return nil }
        self.text = text
        switch text.utf8.first {
        case UInt8(ascii: "/"): name = Array(text.utf8)
        case UInt8(ascii: "@"): name = [0] + text.utf8.dropFirst()
        default: return nil
        }
    }

    /// Sends one datagram.
    ///
    /// - Returns: 0, or the error's number.
    func send(_ message: String, patience: timeval) -> Int32 {
        #if canImport(Darwin)
            let kind = SOCK_DGRAM
        #else
            let kind = Int32(SOCK_DGRAM.rawValue)
        #endif
        let descriptor = socket(AF_UNIX, kind, 0)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        var patience = patience
        setsockopt(
            descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let size = MemoryLayout.offset(of: \sockaddr_un.sun_path).map { $0 + name.count } ?? 0
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, message, message.utf8.count, 0, $0, socklen_t(size)) < 0
                    ? errno : 0
            }
        }
    }
}
