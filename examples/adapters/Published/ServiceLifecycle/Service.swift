// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// What swift-service-lifecycle publishes, as far as the adapter uses it. It does nothing.

public protocol Service: Sendable {
    func run() async throws
}

public func gracefulShutdown() async throws {}
