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

    private var check: OrderCheck

    init(expected: Int, completed: @escaping (Sighting) -> Void) {
        check = OrderCheck(expected: expected, completed)
    }

    fileprivate func apply(_ action: TypedAction) {
        if case .add(let amount) = action { check.add(producer: 0, index: UInt64(amount)) }
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
        at place: Place, count: Int, _: Form.Type
    ) async throws {
        try await NodeRoles.produce(at: place, TypedState<Form>.self) { actions in
            var last: DispatchHandle?
            for index in 0..<count { last = actions.dispatch(.add(amount: index)) }
            return last
        }
    }

    private static func replica<Form: TypedForm>(
        at place: Place, count: Int, _: Form.Type
    ) async throws {
        try await NodeRoles.replicate(
            at: place, TypedState<Form>(expected: count) { Control.tell(.replicated($0)) },
            TypedMutations())
    }
}
