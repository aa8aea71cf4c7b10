/// Hands a value over to the one thread that uses it from then on.
// Sendable: handed over once; confined to one thread before and after.
package struct Handover<Value>: @unchecked Sendable {
    /// What is handed over.
    package let value: Value

    /// Wraps a value that its maker does not touch any more.
    package init(_ value: Value) {
        self.value = value
    }
}
