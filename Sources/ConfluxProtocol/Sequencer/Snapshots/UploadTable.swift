import ConfluxVocabulary

/// Snapshots on their way from replicas to the log, part by part: the first half of rule 19.
///
///     wanted ──▶ asked ── part ──▶ saving ── saved ──▶ asked … ──▶ taken
///                  │ no answer, or gone: the next source, at the same place
///
/// A part is asked for once the one before it is in the log, so that one of each upload is in memory
/// at most. Replicas with one digest have the same bytes, so that any of them can go on where another
/// ended; what came is hashed on its way, and what does not have the digest in the end is given up.
struct UploadTable: Sendable {
    /// One snapshot.
    struct Upload: Sendable {
        let place: SnapshotPlace
        let reference: SnapshotReference
        /// What concerned the store up to the point, in bytes.
        let load: UInt64
        /// Whether it becomes what openers begin with.
        let isConfirmed: Bool
        /// Who has it, and was not asked in vain.
        var sources: [Incarnation]
        /// How many bytes came and are in the log.
        var offset: UInt64 = 0
        var hasher = DigestHasher()
        var step = Step.waiting

        enum Step: Sendable, Equatable {
            /// For its turn.
            case waiting
            /// The first source was asked, and has until then.
            case asked(until: Duration)
            /// The log is saving so many bytes.
            case saving(UInt64)
        }

        init(
            _ reference: SnapshotReference, of round: DigestTable.Round, isConfirmed: Bool
        ) {
            place = round.place
            load = round.load
            sources = round.sources(of: reference.digest)
            self.reference = reference
            self.isConfirmed = isConfirmed
        }
    }

    /// By store: one of each at most.
    private(set) var uploads: [StoreName: Upload] = [:]
    /// Those that wait for their turn, in their order.
    private var waiting: [StoreName] = []
    /// The uploads that were given up while the log saved a part of them, in the order in which it
    /// answers. *Use*: such an answer is not taken for that of a later part; and what was whole by it
    /// is there all the same.
    private var givenUp: [StoreName: [Upload]] = [:]

    subscript(store: StoreName) -> Upload? {
        get { uploads[store] }
        set { uploads[store] = newValue }
    }

    /// How many are under way.
    var activeCount: Int { uploads.count - waiting.count }
    var count: Int { uploads.count }

    /// Wants a snapshot; a former one of the store is given up, unless it is for the same.
    mutating func add(_ upload: Upload) {
        if let former = uploads[upload.place.store], former.place == upload.place,
            former.reference == upload.reference, former.isConfirmed == upload.isConfirmed
        {
            return
        }
        remove(upload.place.store)
        uploads[upload.place.store] = upload
        waiting.append(upload.place.store)
    }

    mutating func remove(_ store: StoreName) {
        guard let upload = uploads.removeValue(forKey: store) else { return }
        if case .saving = upload.step { givenUp[store, default: []].append(upload) }
        waiting.removeAll { $0 == store }
    }

    /// The log has answered for a part; it answers in the order in which it was asked.
    ///
    /// - Returns: What the part is of, how many bytes it has, and whether that was given up; nil where
    ///   nobody waits for it.
    mutating func answered(
        _ place: SnapshotPlace, _ offset: UInt64
    ) -> (Upload, bytes: UInt64, isGivenUp: Bool)? {
        if var former = givenUp[place.store] {
            let upload = former.removeFirst()
            givenUp[place.store] = former.isEmpty ? nil : former
            guard case .saving(let bytes) = upload.step else { return nil }
            return (upload, bytes, true)
        }
        guard var upload = uploads[place.store], upload.place == place, upload.offset == offset,
            case .saving(let bytes) = upload.step
        else { return nil }
        upload.step = .waiting
        uploads[place.store] = upload
        return (upload, bytes, false)
    }

    /// Whether the log saves a part of a store's snapshot, be it one that was given up.
    func isSaving(_ store: StoreName) -> Bool {
        if givenUp[store] != nil { return true }
        if case .saving? = uploads[store]?.step { return true }
        return false
    }

    /// Whether the log saves a part of a snapshot that was given up.
    func isSavingGivenUp(_ place: SnapshotPlace) -> Bool {
        givenUp[place.store]?.contains { $0.place == place } ?? false
    }

    /// The next one that waits, if there is room; it counts as under way from here on.
    mutating func next(most: Int) -> Upload? {
        guard activeCount < most, !waiting.isEmpty else { return nil }
        return uploads[waiting.removeFirst()]
    }

    /// Those whose source did not answer in time, ascending.
    func overdue(at now: Duration) -> [StoreName] {
        uploads.compactMap { store, upload in
            if case .asked(let until) = upload.step, now >= until { store } else { nil }
        }.sorted()
    }

    /// When a source has had its time next.
    var nextDeadline: Duration? {
        uploads.values.lazy.compactMap { upload in
            if case .asked(let until) = upload.step { until } else { nil }
        }.min()
    }
}
