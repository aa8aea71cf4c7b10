/// How full one queue, table or buffer of a machine is (P7).
package struct Bound: Sendable {
    /// The setting that bounds it, or what it is.
    package let name: String
    /// What it holds now.
    package let level: Int
    /// What it may hold.
    package let most: Int

    init(_ name: String, _ level: Int, of most: Int) {
        self.name = name
        self.level = level
        self.most = most
    }
}
