/// A value that can be read and observed, but not changed from here.
///
/// ```swift
/// let variable = Variable(0)
/// let constant = variable.constant
/// variable.value = 1
/// print(constant.value)  // prints "1"
/// ```
public struct Constant<Value> {
    private let variable: Variable<Value>

    /// Makes a constant of a value that never changes.
    ///
    /// - Parameter value: The value.
    public init(_ value: Value) {
        variable = Variable(value)
    }

    /// Makes a constant that follows a variable.
    ///
    /// - Parameter variable: Retained.
    public init(variable: Variable<Value>) {
        self.variable = variable
    }

    /// The latest value.
    public var value: Value { variable.value }

    /// The latest value, on the thread that observes, and then every change.
    public var signal: Signal<Value> { variable.signal }
}

extension Constant: StateSource {
    func watch(isOver: Bool) { variable.watch(isOver: isOver) }
}

extension Constant: Sendable where Value: Sendable {}
