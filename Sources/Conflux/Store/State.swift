/// What a store manages: a class that holds values, and names the actions that change them.
///
/// Keep the properties `fileprivate`, change them only in your ``Mutations``, and publish them by
/// extending ``Computed``.
///
/// ```swift
/// final class CounterState: State {
///     typealias Action = CounterAction
///     typealias Mutations = CounterMutations
///
///     fileprivate let count = Variable(0)
/// }
/// ```
///
/// If you also import SwiftUI, write `Conflux.State`.
public protocol State: AnyObject, SendableMetatype {
    /// What can happen to the state.
    ///
    /// An action may be committed on another thread than the one that dispatched it.
    associatedtype Action
    /// How an action changes the state.
    associatedtype Mutations: Conflux.Mutations where Mutations.State == Self
}

/// A property of a state that sends values: a ``Variable``, a ``Sink``, a ``Constant``.
protocol StateSource {
    /// Says whether it will send anything more.
    func watch(isOver: Bool)
}

extension State {
    /// Says whether anything will change the state, to the properties that send values. Called in the lane.
    func watchSources(isOver: Bool) {
        // A value has no such properties, and its observers ask the lane.
        if self is any ValueReading { return }
        var mirror: Mirror? = Mirror(reflecting: self)
        while let present = mirror {
            for property in present.children {
                (property.value as? any StateSource)?.watch(isOver: isOver)
            }
            mirror = present.superclassMirror
        }
    }
}

/// Changes a state by actions. Nothing else changes it.
///
/// ```swift
/// struct CounterMutations: Mutations {
///     func commit(action: CounterAction, state: CounterState) {
///         switch action {
///         case .increment: state.count.value += 1
///         case .decrement: state.count.value -= 1
///         }
///     }
/// }
/// ```
///
/// Adopt ``ContextMutations`` to refuse actions, or to learn an action's place and time.
public protocol Mutations: SendableMetatype {
    /// The state that is changed.
    associatedtype State: Conflux.State

    /// Changes the state, synchronously.
    ///
    /// A store calls it for one action at a time, in the order of its lane, holding no lock.
    /// Dispatching from inside it is legal: the new action is committed after this one.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - state: The store's state.
    func commit(action: State.Action, state: State)

    /// Checks and commits one action. Called by stores; there is no reason to implement it.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - state: The store's state.
    ///   - context: Makes the action's context, for mutations that want one; the same however
    ///     often it is called.
    /// - Throws: Why the action is refused; then nothing has changed.
    func _perform(
        action: State.Action, state: State, context: () -> ActionContext
    ) throws
}

extension Mutations {
    /// Commits without looking at the context. Refuses nothing.
    @inlinable
    public func _perform(
        action: State.Action, state: State, context: () -> ActionContext
    ) throws {
        commit(action: action, state: state)
    }
}
