import ConfluxZeroMQ
import Synchronization

/// Finds out why no sequencer serves this node yet, from its attempts to connect.
///
/// A finding is *final* if somebody has to change something before a further attempt can succeed, at every address. A
/// sequencer that is silent, stopped, cut off or not serving may serve in the next moment, so nothing of that is final.
final class AddressDiagnosis: Sendable {
    /// What was last found at an address.
    private struct Finding {
        var message: String
        /// Whether the attempt has ended, and did not only begin.
        var isFailure = false
        var isFinal = false
    }

    private struct Content {
        /// What was found at each of the node's own addresses.
        var findings: [Endpoint: Finding] = [:]
        /// What was found at the address to which one of them sent the node: then that one works, and this is the reason.
        var elsewhere: (endpoint: Endpoint, finding: Finding)?
        /// What the sequencer itself said. It takes precedence over findings that are not final.
        var word: NodeError?
        var isFinal = false
        var isOver = false
        /// Whether the node has heard from the address that it is connected to.
        var isConnected = false
        var listener: (@Sendable (NodeError) -> Void)?
    }

    private let addresses: [Endpoint]
    private let state = Mutex(Content())

    init(of addresses: [Endpoint]) { self.addresses = addresses }

    /// The finding, with the reason at each address that failed; nil before there is one.
    var error: NodeError? { state.withLock { error(of: $0) } }

    private func error(of state: Content) -> NodeError? {
        if let word = state.word, !state.isFinal { return word }
        let messages =
            state.elsewhere.map { [$0.finding.message] }
            ?? addresses.compactMap { state.findings[$0]?.message }
        guard !messages.isEmpty else { return nil }
        return NodeError(code: .unreachable, message: messages.joined(separator: " "))
    }

    /// Whether nobody waits for a sequencer any more.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Takes an event of the connection.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - endpoint: The address of the connection.
    func take(_ event: ClientEvent, of endpoint: Endpoint) {
        state.withLock { $0.isConnected = event == .connected }
        guard let found = WayFinding(event, of: endpoint, way: .requests) else { return }
        let finding = Finding(
            message: found.message, isFailure: found.isFailure, isFinal: found.isFinal)
        let tell = state.withLock { state -> (() -> Void)? in
            note(finding, at: found.endpoint, isBegun: event == .connecting, in: &state)
            let isFinal = addresses.allSatisfy { state.findings[$0]?.isFinal == true }
            guard found.isFinal, isFinal else { return nil }
            state.isFinal = true
            guard let listener = state.listener, let error = self.error(of: state) else {
                return nil
            }
            return { listener(error) }
        }
        tell?()
    }

    /// An attempt that has only begun says less than what the last one found.
    private func note(
        _ finding: Finding, at endpoint: Endpoint, isBegun: Bool, in state: inout Content
    ) {
        guard addresses.contains(endpoint) else {
            if isBegun, state.elsewhere?.endpoint == endpoint { return }
            state.elsewhere = (endpoint, finding)
            return
        }
        if isBegun, state.findings[endpoint] != nil { return }
        state.findings[endpoint] = finding
        // A standby that sends the node to an address that fails works itself.
        if finding.isFailure || state.elsewhere?.finding.isFailure != true {
            state.elsewhere = nil
        }
    }

    /// Notes that nobody answers at an address, so the node tries its next one.
    func gaveUp(_ endpoint: Endpoint) {
        state.withLock { state in
            let former =
                addresses.contains(endpoint)
                ? state.findings[endpoint]
                : state.elsewhere.flatMap { $0.endpoint == endpoint ? $0.finding : nil }
            // A sequencer that was heard is busy, or does not serve yet.
            guard addresses.count > 1, !state.isConnected, former?.isFailure != true else { return }
            let finding = Finding(message: WayFinding.silent(endpoint))
            note(finding, at: endpoint, isBegun: false, in: &state)
        }
    }

    /// Takes the sequencer's reason for not serving. It may serve again soon, so the node waits.
    func sequencerSays(_ message: String, at endpoint: Endpoint?) {
        let place = endpoint.map { " at \($0)" } ?? ""
        let error = NodeError(
            code: .notServing, message: "The sequencer\(place) does not serve: \(message)")
        state.withLock { $0.word = error }
    }

    /// Calls a function once a finding is final.
    func whenFinal(_ listener: @escaping @Sendable (NodeError) -> Void) {
        let error = state.withLock { state in
            state.listener = listener
            return state.isFinal ? self.error(of: state) : nil
        }
        if let error { listener(error) }
    }

    /// Ends the diagnosis: a sequencer was heard, or nobody waits for one any more.
    func end() {
        state.withLock { state in
            state.isOver = true
            state.listener = nil
        }
    }
}
