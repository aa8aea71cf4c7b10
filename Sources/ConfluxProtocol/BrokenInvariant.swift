/// What a part of a machine promises itself does not hold. The simulator and the fuzzer check it after every step.
package struct BrokenInvariant: Error, CustomStringConvertible {
    /// What does not hold, with the values that show it.
    package let description: String
}

/// Checks an invariant.
func hold(
    _ condition: Bool, _ description: @autoclosure () -> String
) throws(BrokenInvariant) {
    guard condition else { throw BrokenInvariant(description: description()) }
}
