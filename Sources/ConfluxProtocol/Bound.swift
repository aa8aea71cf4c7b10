/// How full one queue, table or buffer is (P7).
public struct Bound: Sendable, Hashable {
    /// The setting that bounds it, or what it is.
    public let name: String
    /// How much it holds now.
    public let level: Int
    /// How much it may hold.
    public let most: Int

    package init(_ name: String, _ level: Int, of most: Int) {
        self.name = name
        self.level = level
        self.most = most
    }
}
