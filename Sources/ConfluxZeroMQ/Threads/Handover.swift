/// Hands a value over to another thread, which alone uses it from then on.
// Sendable: handed over once; confined to one thread before and after.
package struct Handover<Value>: @unchecked Sendable {
    /// The value.
    package let value: Value

    /// Wraps a value. The caller must not use the value afterwards.
    package init(_ value: Value) {
        self.value = value
    }
}
