/// The one rule for every bound that several owners share: an owner may use as much as it leaves free (rule 48).
///
/// So an owner that uses nothing finds room for as long as there is any, and no owner takes what another one needs:
/// one owner fills at most half of a bound, two fill a third each, and so on. Nothing has to be reserved, and no
/// number of owners has to be known.
public enum ShareRule {
    /// Decides whether an owner may use more.
    ///
    /// - Parameters:
    ///   - amount: How much more.
    ///   - used: How much it uses already.
    ///   - total: How much all owners use together.
    ///   - most: The bound.
    /// - Returns: Whether it may. If so, the total stays within the bound.
    @inlinable public static func admits(
        _ amount: Int, using used: Int, ofTotal total: Int, of most: Int
    ) -> Bool {
        used + amount <= most - total
    }
}

/// How much of a bound each owner uses (see ``ShareRule``).
public struct Shares<Owner: Hashable & Sendable>: Sendable, Equatable {
    /// *Invariant*: no use is 0.
    @usableFromInline var uses: [Owner: Int] = [:]
    @usableFromInline var sum = 0

    /// How much is used by all, including what nobody owns.
    @inlinable public var total: Int { sum }

    /// Makes shares of which nothing is used.
    @inlinable public init() {}

    /// How much an owner uses.
    @inlinable public func use(of owner: Owner) -> Int { uses[owner] ?? 0 }

    /// The owners that use something, in no particular order.
    public var owners: some Collection<Owner> { uses.keys }

    /// Decides whether an owner may use more.
    ///
    /// - Parameters:
    ///   - owner: The owner; nil if nobody is known to own it. Then only the bound counts.
    ///   - amount: How much more.
    ///   - most: The bound.
    /// - Returns: Whether it may.
    @inlinable public func hasRoom(for owner: Owner?, _ amount: Int = 1, of most: Int) -> Bool {
        ShareRule.admits(amount, using: owner.map(use) ?? 0, ofTotal: total, of: most)
    }

    /// Counts what an owner uses from now on.
    @inlinable public mutating func add(_ amount: Int = 1, of owner: Owner?) {
        guard amount != 0 else { return }
        sum += amount
        guard let owner else { return }
        let use = uses[owner, default: 0] + amount
        precondition(use >= 0 && sum >= 0, "\(owner) gives back more than it used")
        uses[owner] = use == 0 ? nil : use
    }

    /// Counts what an owner no longer uses.
    @inlinable public mutating func remove(_ amount: Int = 1, of owner: Owner?) {
        add(-amount, of: owner)
    }
}
