import ConfluxProtocol
import ConfluxVocabulary

/// Lets stores catch up. Their entries are applied in slices. Jobs that arrive meanwhile run between two
/// turns, so that a receipt of another store waits for one turn at most. A turn takes as many slices as
/// ``sliceBytesMax`` allows: with a turn for each small commit, a busy machine would never reach the end of the feed.
///
/// Slices are decoded while the store's snapshot is. Their actions then enter its lane behind the snapshot
/// (``Replica/enter(_:)``), again slice by slice.
///
/// *Invariants*: a store that catches up gets its slices in order. Only jobs that concern other stores
/// overtake them (``ApplyJob/mayOvertake``). All other jobs run after the last slice.
extension Applier {
    /// A part of a commit, for stores that catch up.
    struct Slice {
        let commit: Commit
        let subjects: Set<HostingSubject>
        /// The delivered bytes that are handed over with it: those of the whole commit with its last slice.
        let byteCount: Int
        /// How much of a turn it takes.
        let size: Int
    }

    func catchUp(_ commit: Commit, byteCount: Int, _ subjects: [HostingSubject]) {
        let parts = commit.slices(bytesMax: sliceBytesMax)
        for (index, part) in parts.enumerated() {
            slices.append(
                Slice(
                    commit: part, subjects: Set(subjects),
                    byteCount: index == parts.count - 1 ? byteCount : 0,
                    size: parts.count == 1 ? byteCount : sliceBytesMax))
        }
        guard !isGoingOn else { return }
        isGoingOn = true
        post(.goOn)
    }

    /// Applies the slices of a turn.
    func goOn() {
        var room = sliceBytesMax
        while let slice = slices.removeFirst() {
            apply(slice)
            room -= slice.size
            guard let next = slices.first, next.size <= room else { break }
        }
        isGoingOn = !slices.isEmpty
        if isGoingOn { post(.goOn) }
    }

    /// Lets the next part of what a store held while its snapshot was decoded enter its lane.
    func enter(_ store: StoreName) {
        if replica(store)?.enterNext(bytesMax: sliceBytesMax) == true { post(.enter(store)) }
    }

    /// Applies all slices at once.
    func finishSlices() {
        while let slice = slices.removeFirst() { apply(slice) }
    }

    private func apply(_ slice: Slice) {
        apply(slice.commit, to: .only(slice.subjects))
        progress.catchUpBytes += slice.byteCount
    }
}

extension ApplyJob {
    /// Whether it concerns no store that catches up, so that it need not wait for slices.
    var mayOvertake: Bool {
        switch self {
        case .deliver(let delivery, _, _):
            switch delivery {
            case .commit, .catchUp, .settle, .reach: true
            default: false
            }
        case .goOn, .enter, .submitted, .abandoned, .inhabited, .asked, .wait, .giveUp, .reported,
            .identified, .look,
            .stop:
            true
        case .register, .unregister: false
        }
    }
}
