// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// What swift-metrics publishes, as far as the adapter uses it. It does nothing.

public final class Counter: Sendable {
    public convenience init(label: String, dimensions: [(String, String)] = []) { self.init() }
    private init() {}
    public func increment<DataType: BinaryInteger>(by amount: DataType) {}
    public func increment() {}
}

public final class Gauge: Sendable {
    public convenience init(label: String, dimensions: [(String, String)] = []) { self.init() }
    private init() {}
    public func record<DataType: BinaryInteger>(_ value: DataType) {}
    public func record<DataType: BinaryFloatingPoint>(_ value: DataType) {}
}
