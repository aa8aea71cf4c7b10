import ConfluxNode
import Foundation

/// The actions of a counter, as a user would write them: with only `Codable`.
enum TypedAction: Codable, Sendable {
    case increment
    case decrement
    case add(amount: Int)
}

/// An action with the index of its dispatch.
protocol IndexedAction: Codable, Sendable {
    static func add(amount: Int) -> Self
    var index: Int? { get }
}

extension TypedAction: IndexedAction {
    var index: Int? { if case .add(let amount) = self { amount } else { nil } }
}

/// The same actions with a handwritten coding.
enum HandAction: IndexedAction, CompactCodable {
    case increment
    case decrement
    case add(amount: Int)

    var index: Int? { if case .add(let amount) = self { amount } else { nil } }

    func write(to output: inout CompactOutput) {
        switch self {
        case .increment: output.beginCase("increment", fields: 0)
        case .decrement: output.beginCase("decrement", fields: 0)
        case .add(let amount):
            output.beginCase("add", fields: 1)
            output.write(amount, forKey: "amount")
        }
    }

    init(from input: inout CompactInput) throws(CompactMismatch) {
        if input.isCase("add", fields: 1) {
            self = .add(amount: try input.integer(forKey: "amount"))
        } else if input.isCase("increment", fields: 0) {
            self = .increment
        } else if input.isCase("decrement", fields: 0) {
            self = .decrement
        } else {
            throw CompactMismatch()
        }
    }
}

/// The codings of a typed state's actions.
enum TypedCoding: String, Codable, Sendable, CaseIterable {
    case json
    case compact
    /// The compact coding, written by hand.
    case hand
}

/// A counter whose actions are decoded and applied, in one of the codings. It checks their order by their
/// amounts, which are indices.
final class TypedState<Form: TypedForm>: BridgedState {
    typealias Action = Form.Action
    typealias Mutations = TypedMutations<Form>

    static var name: String { "typed-\(Form.coding)" }
    static var coding: PayloadCoding { Form.coding == .json ? .json : .compact }

    private var check: OrderCheck

    init(expected: Int, completed: @escaping (Sighting) -> Void) {
        check = OrderCheck(expected: expected, completed)
    }

    fileprivate func apply(_ action: Action) {
        if let index = action.index { check.add(producer: 0, index: UInt64(index)) }
    }
}

/// Represents a coding by a type.
protocol TypedForm: Sendable {
    associatedtype Action: IndexedAction
    static var coding: TypedCoding { get }
}

enum JSONForm: TypedForm {
    typealias Action = TypedAction
    static let coding = TypedCoding.json
}

enum CompactForm: TypedForm {
    typealias Action = TypedAction
    static let coding = TypedCoding.compact
}

enum HandForm: TypedForm {
    typealias Action = HandAction
    static let coding = TypedCoding.hand
}

struct TypedMutations<Form: TypedForm>: Mutations {
    func commit(action: Form.Action, state: TypedState<Form>) {
        state.apply(action)
    }
}

/// The processes of the workload with typed actions.
enum TypedRoles {
    static func producer(at place: Place, count: Int, coding: TypedCoding) async throws {
        switch coding {
        case .json: try await producer(at: place, count: count, JSONForm.self)
        case .compact: try await producer(at: place, count: count, CompactForm.self)
        case .hand: try await producer(at: place, count: count, HandForm.self)
        }
    }

    static func replica(at place: Place, count: Int, coding: TypedCoding) async throws {
        switch coding {
        case .json: try await replica(at: place, count: count, JSONForm.self)
        case .compact: try await replica(at: place, count: count, CompactForm.self)
        case .hand: try await replica(at: place, count: count, HandForm.self)
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
