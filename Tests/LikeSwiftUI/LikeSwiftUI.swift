// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

/// The property wrapper that SwiftUI has under this name.
@propertyWrapper
public struct State<Value> {
    public var wrappedValue: Value

    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
}

/// What SwiftUI has under this name.
public struct Transaction {
    public var isContinuous = false

    public init() {}
}
