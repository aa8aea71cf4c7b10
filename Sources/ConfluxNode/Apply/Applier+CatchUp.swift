import ConfluxProtocol

/// Stores that catch up. What they were given is applied in slices, each behind the jobs that
/// arrived meanwhile. So no receipt of another store waits for more than one slice.
///
/// *Invariants*: A store that catches up gets its slices in their order. Only jobs that concern
/// other stores overtake slices (``ApplyJob/mayOvertake``). Every other job is done after the last
/// slice.
extension Applier {
    /// A part of a commit, for stores that catch up.
    struct Slice {
        let commit: Commit
        let subjects: Set<HostingSubject>
        /// How many delivered bytes are done with this slice: the whole commit's with its last
        /// slice, otherwise none.
        let byteCount: Int
    }

    func catchUp(_ commit: Commit, byteCount: Int, _ subjects: [HostingSubject]) {
        let parts = commit.slices(bytesMax: sliceBytesMax)
        for (index, part) in parts.enumerated() {
            slices.append(
                Slice(
                    commit: part, subjects: Set(subjects),
                    byteCount: index == parts.count - 1 ? byteCount : 0))
        }
        guard !isGoingOn else { return }
        isGoingOn = true
        post(.goOn)
    }

    /// Applies the next slice.
    func goOn() {
        if !slices.isEmpty { apply(slices.removeFirst()) }
        isGoingOn = !slices.isEmpty
        if isGoingOn { post(.goOn) }
    }

    /// Applies all slices at once.
    func finishSlices() {
        for slice in slices { apply(slice) }
        slices = []
    }

    private func apply(_ slice: Slice) {
        apply(slice.commit, to: .only(slice.subjects))
        progress.catchUpBytes += slice.byteCount
    }
}

extension ApplyJob {
    /// Whether the job concerns no store that catches up, so that it need not wait for the slices.
    var mayOvertake: Bool {
        switch self {
        case .deliver(let delivery, _):
            switch delivery {
            case .commit, .catchUp, .settle, .reach: true
            default: false
            }
        case .goOn, .submitted, .abandoned, .inhabited, .asked, .wait, .giveUp, .reported,
            .identified, .probe,
            .stop:
            true
        case .register, .unregister: false
        }
    }
}
