/// Why metrics and health can't be served.
package struct HTTPError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure.
    package enum Code: String, Sendable, Hashable, CaseIterable {
        /// The address is invalid, or is not this machine's.
        case invalidAddress
        /// Other machines can reach the address, and there is no token.
        case insecure
        /// The token's file can't be read, holds no token, or others may read it.
        case invalidToken
        /// Another process listens there.
        case addressInUse
        /// The system refused for another reason.
        case failed
    }

    /// The kind of failure.
    package let code: Code
    /// What happened and what to do.
    package let message: String

    package var description: String { message }
}
