import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import Foundation
import Synchronization

/// Sends the actions that are dispatched to a store, or to a state, to the log through a node's outbox.
package final class OutboxRoute<S: BridgedState>: ActionRoute {
    let outbox: Outbox
    /// The destination of actions that every program which can host the store understands: usually all.
    private let destination: Outbox.Destination
    /// Those of other actions, by the version that these need.
    private let newerDestinations: [UInt32: Outbox.Destination]
    private let coder: ActionCoder<S.Action>
    private let coding: PayloadCoding
    /// The coding without a tape. Actions that have none need the tape. (As an optional it would be retained for each
    /// action.)
    private let quick: QuickCoding<S.Action>

    let target: Target
    /// Reads the past of the store; nil for a route that is not a node's.
    let past: PastReader?

    package init(outbox: Outbox, target: Target, past: PastReader? = nil) {
        self.outbox = outbox
        self.target = target
        self.past = past
        // The store's life is not known yet. Zero means its life when the action is admitted.
        let destinations = { (version: UInt32) in
            Outbox.Destination(
                BatchTarget(target: target, schemaVersion: version, coding: S.coding))
        }
        let (oldest, newest) = (S.supportedVersions.oldest, S.supportedVersions.newest)
        destination = destinations(oldest)
        newerDestinations = Dictionary(
            uniqueKeysWithValues: (oldest..<newest).map { ($0 + 1, destinations($0 + 1)) })
        coder = ActionCoder(sizeBytesMax: outbox.limits.payloadBytesMax)
        coding = S.coding
        quick = (coding == .compact ? coder.quick : nil) ?? QuickCoding()
    }

    /// Whether the node takes no more actions.
    var isClosed: Bool { outbox.isClosedForActions }

    package var sender: ObjectIdentifier? { ObjectIdentifier(outbox) }

    /// Whether the route leads to this outbox.
    func leads(to other: Outbox) -> Bool { outbox === other }

    func mean(_ life: SequenceNumber) {
        outbox.mean(life, by: destination)
        for destination in newerDestinations.values { outbox.mean(life, by: destination) }
    }

    /// The destination of an action. A version that the program does not understand counts as the newest.
    private func destination(of action: S.Action) -> Outbox.Destination {
        if newerDestinations.isEmpty { return destination }
        let (version, versions) = (
            UInt32(clamping: S.schemaVersion(of: action)), S.supportedVersions
        )
        return newerDestinations[min(version, versions.newest)] ?? destination
    }

    package func submit(_ action: S.Action, mayWait: Bool) -> DispatchHandle {
        submit(action, mayWait: mayWait, ifUnchangedSince: nil)
    }

    package func isOrigin(_ origin: Origin) -> Bool {
        // That of a timer's action is none, and so is this one's before the node has joined.
        origin.incarnation != .none
            && outbox.incarnation.load(ordering: .relaxed) == origin.incarnation.rawValue
    }

    package func conditional(on version: StoreVersion) -> any ActionRoute<S> {
        if case .store = target { return ConditionalRoute(self, version) }
        return ClosedRoute<S>(.conditionOfMany(S.self))
    }

    package func prepare(_ action: S.Action) -> (any PreparedAction)? {
        // An action that can't be encoded fails when it is sent alone.
        guard let (target, payload) = try? entry(of: action) else { return nil }
        return OutboxAction(outbox: outbox, target: target, payload: payload)
    }

    /// What a batch has of an action: its target and its encoding.
    package func entry(of action: S.Action) throws(DispatchError) -> (BatchTarget, [UInt8]) {
        do throws(CodingFailure) {
            let payload = try coder.encode(action, as: coding)
            return (outbox.target(of: destination(of: action)), payload)
        } catch {
            throw .notEncodable(S.self, error)
        }
    }

    fileprivate func submit(
        _ action: S.Action, mayWait: Bool, ifUnchangedSince version: StoreVersion?
    ) -> DispatchHandle {
        if let handle = submitQuickly(action, mayWait: mayWait, version) { return handle }
        do throws(CodingFailure) {
            return outbox.submit(
                destination(of: action), try coder.encode(action, as: coding), mayWait: mayWait,
                ifUnchangedSince: version)
        } catch {
            return DispatchHandle(.failed(.notEncodable(S.self, error)))
        }
    }
}

extension BridgedState {
    /// The versions that this program understands.
    static var supportedVersions: SupportedVersions {
        SupportedVersions(
            UInt32(clamping: schemaVersion), oldest: UInt32(clamping: oldestSchemaVersion))
    }
}

extension OutboxRoute {
    /// Encodes an action on this thread's stack and copies it into the outbox. Nothing is allocated.
    ///
    /// - Returns: A handle of the outcome; nil if the action is too large for this, or can't be encoded.
    private func submitQuickly(
        _ action: S.Action, mayWait: Bool, _ version: StoreVersion?
    ) -> DispatchHandle? {
        withUnsafeTemporaryAllocation(byteCount: QuickCodingLimits.bytesMax, alignment: 8) {
            buffer -> DispatchHandle? in
            guard let count = quick.write(action, to: buffer), count <= coder.sizeBytesMax else {
                return nil
            }
            return outbox.submit(
                destination(of: action), UnsafeRawBufferPointer(rebasing: buffer[..<count]),
                mayWait: mayWait, ifUnchangedSince: version)
        }
    }
}

extension Outbox {
    /// Appends an action whose payload is an array.
    package func submit(
        _ destination: Destination, _ payload: [UInt8], mayWait: Bool,
        ifUnchangedSince version: StoreVersion? = nil
    ) -> DispatchHandle {
        payload.withUnsafeBytes {
            submit(destination, $0, mayWait: mayWait, ifUnchangedSince: version)
        }
    }
}

/// An action or an event for the log, next to those of other states.
struct OutboxAction: PreparedAction {
    let outbox: Outbox
    let target: BatchTarget
    let payload: [UInt8]
    /// Rows without an entry: of the states that don't take an event.
    var others: [BatchTarget] = []

    var sender: ObjectIdentifier { ObjectIdentifier(outbox) }

    func send(_ all: [any PreparedAction], mayWait: Bool) -> [DispatchHandle] {
        let actions = all.compactMap { $0 as? OutboxAction }
        return outbox.submit(
            actions.map { ($0.target, $0.payload) }, on: actions.flatMap(\.others),
            mayWait: mayWait)
    }
}

/// Sends actions on condition that the store has not changed since a version.
private final class ConditionalRoute<S: BridgedState>: ActionRoute {
    private let route: OutboxRoute<S>
    private let version: StoreVersion

    init(_ route: OutboxRoute<S>, _ version: StoreVersion) {
        (self.route, self.version) = (route, version)
    }

    func submit(_ action: S.Action, mayWait: Bool) -> DispatchHandle {
        route.submit(action, mayWait: mayWait, ifUnchangedSince: version)
    }

    func conditional(on version: StoreVersion) -> any ActionRoute<S> {
        ConditionalRoute(route, version)
    }
}

/// Refuses actions for a store, or a state, that the node no longer hosts. They would change it here
/// alone.
package final class ClosedRoute<S: State>: ActionRoute {
    let error: DispatchError
    /// Whether it stopped by itself, so that nobody closed it.
    let isStopped: Bool

    /// Makes the route of a store that was closed.
    package init(_ name: StoreName) {
        isStopped = false
        error = DispatchError(
            code: .storeClosed,
            message: """
                \(name) is no longer hosted by this node, so the action was not sent. \
                Open the store again.
                """)
    }

    /// Makes the route of a store, or a state, that could not be opened again.
    init(stoppedBy reason: NodeError) {
        isStopped = true
        error = DispatchError(
            code: .storeStopped, message: "The action was not sent: \(reason.message)",
            reason: reason)
    }

    init(_ error: DispatchError) {
        (isStopped, self.error) = (false, error)
    }

    package func submit(_ action: S.Action, mayWait: Bool) -> DispatchHandle {
        DispatchHandle(.failed(error))
    }

    package func conditional(on version: StoreVersion) -> any ActionRoute<S> { self }
}

/// Marks the node's own threads. They must not wait for room in the outbox, since they empty it.
enum NodeThread {
    /// The thread that set it. A task that begins on the thread inherits the value and runs elsewhere, so the value
    /// is compared with the current thread.
    @TaskLocal private static var owner: ObjectIdentifier?

    static var isCurrent: Bool { owner.map { $0 == ObjectIdentifier(Thread.current) } ?? false }

    static func run<Result>(_ body: () -> Result) -> Result {
        let thread = Thread.current
        defer { withExtendedLifetime(thread) {} }
        return $owner.withValue(ObjectIdentifier(thread), operation: body)
    }
}
