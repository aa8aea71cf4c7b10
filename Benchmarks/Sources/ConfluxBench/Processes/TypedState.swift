import CPartner
import ConfluxNode
import Foundation

/// What can happen to a counter, as a user writes it: nothing but `Codable`.
enum TypedAction: Codable, Sendable {
    case increment
    case decrement
    case add(amount: Int)
}

/// How a typed state's actions are encoded.
enum TypedCoding: String, Codable, Sendable, CaseIterable {
    case json
    case compact
}

/// A counter whose actions are decoded and applied, in one of the codings. It checks their order by the
/// amounts, which are indices.
final class TypedState<Form: TypedForm>: BridgedState {
    typealias Action = TypedAction
    typealias Mutations = TypedMutations<Form>

    static var name: String { "typed-\(Form.coding)" }
    static var coding: PayloadCoding { Form.coding == .json ? .json : .compact }

    private var order = partner_order()
    private let expected: UInt64
    /// Told once, in the thread that applies, when all expected actions were applied.
    private let completed: (Sighting) -> Void

    init(expected: Int, completed: @escaping (Sighting) -> Void) {
        self.expected = UInt64(expected)
        self.completed = completed
    }

    fileprivate func apply(_ action: TypedAction) {
        guard case .add(let amount) = action else { return }
        partner_order_add(&order, 0, UInt64(amount))
        if order.count == expected {
            completed(
                Sighting(
                    count: order.count, hash: order.hash, disorders: order.disorders,
                    end: monotonicNanoseconds()))
        }
    }
}

/// Names a coding by a type.
protocol TypedForm: Sendable {
    static var coding: TypedCoding { get }
}

enum JSONForm: TypedForm { static let coding = TypedCoding.json }
enum CompactForm: TypedForm { static let coding = TypedCoding.compact }

struct TypedMutations<Form: TypedForm>: Mutations {
    func commit(action: TypedAction, state: TypedState<Form>) {
        state.apply(action)
    }
}

/// The processes of the workload with typed actions.
enum TypedRoles {
    static func producer(at place: Place, count: Int, coding: TypedCoding) async throws {
        switch coding {
        case .json: try await producer(at: place, count: count, JSONForm.self)
        case .compact: try await producer(at: place, count: count, CompactForm.self)
        }
    }

    static func replica(at place: Place, count: Int, coding: TypedCoding) async throws {
        switch coding {
        case .json: try await replica(at: place, count: count, JSONForm.self)
        case .compact: try await replica(at: place, count: count, CompactForm.self)
        }
    }

    private static func producer<Form: TypedForm>(
        at place: Place, count: Int, _ form: Form.Type
    ) async throws {
        let node = try await Node.connect(to: place.address, settings: try place.nodeSettings)
        try await node.bridge(TypedState<Form>.self)
        let start = begin()
        let last = dispatch(count, form)
        let dispatched = monotonicNanoseconds()
        try await last?.receipt()
        Control.tell(
            .produced(start: start, dispatched: dispatched, settled: monotonicNanoseconds()))
        await node.close()
    }

    private static func begin() -> UInt64 {
        Control.awaitStart()
        return monotonicNanoseconds()
    }

    private static func dispatch<Form: TypedForm>(
        _ count: Int, _: Form.Type
    ) -> DispatchHandle? {
        let actions = Store<TypedState<Form>>.actions
        var last: DispatchHandle?
        for index in 0..<count { last = actions.dispatch(.add(amount: index)) }
        return last
    }

    private static func replica<Form: TypedForm>(
        at place: Place, count: Int, _: Form.Type
    ) async throws {
        let node = try await Node.connect(to: place.address, settings: try place.nodeSettings)
        let state = TypedState<Form>(expected: count) { Control.tell(.replicated($0)) }
        let store = Store<TypedState<Form>>(
            state: state, mutations: TypedMutations(), executor: .immediate)
        try await node.bridge(TypedState<Form>.self)
        Control.tell(.ready)
        for await event in node.events {
            if case .closed(let message) = event { throw BenchError(message) }
        }
        withExtendedLifetime(store) {}
    }
}
