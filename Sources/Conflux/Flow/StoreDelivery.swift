import ConfluxVocabulary

/// What a node needs of a store: ordered actions go in, the state at a known number comes out.
extension StoreCore {
    /// Puts a run of ordered actions into the lane, behind what is in the line.
    ///
    /// A node calls it from one thread at a time, in the log's order. The store commits in that
    /// order, whatever its executor. Actions at or below the store's ``position`` are passed over.
    /// It never waits: the caller bounds what is under way by the completions.
    ///
    /// - Parameters:
    ///   - run: The actions, in the log's order. It may be empty. The lane takes them out of it.
    ///   - through: The number up to which the log has nothing more for this store, and its epoch; the position
    ///     rises to it after the run.
    ///   - completion: Called once after the run, on the thread that committed it, holding no lock.
    ///     If the store is immediate and uncontended, that is before this returns. If the store is
    ///     released earlier, it is called on the thread that finds that out.
    package func deliver(
        _ run: OrderedRun<S>, through: StoreVersion = StoreVersion(sequence: .zero),
        completion: @escaping @Sendable (RunReport) -> Void
    ) {
        // To make the job takes longer than a small run.
        enqueue(
            .work { [self] isOpen in
                isOpen ? perform(run, through: through, completion) : completion(.closed)
            }
        ) { perform(run, through: through, completion) }
    }

    /// Puts ordered actions that are in memory already into the lane.
    package func deliver(
        _ run: [OrderedAction<S>], through: StoreVersion = StoreVersion(sequence: .zero),
        completion: @escaping @Sendable (RunReport) -> Void
    ) {
        deliver(OrderedRun(run), through: through, completion: completion)
    }

    /// Runs a function in the lane, with the state and the number of the last ordered action that
    /// the store has dealt with; with nil instead of the state if the store is released before.
    ///
    /// - Parameter body: Called once, holding no lock. It must not let the state escape.
    package func inspect(
        _ body: @escaping @Sendable (_ state: S?, _ position: SequenceNumber) -> Void
    ) {
        enqueue(look(body)) {
            body(isReleased.load(ordering: .relaxed) ? nil : state.takeUnretainedValue(), position)
        }
    }

    /// Runs a function that changes the state in the lane, as soon as no lock pauses the flow.
    /// Drops it if the store is released before, or changes only through a route.
    func runPastGate(_ body: @escaping @Sendable () -> Void) {
        scope.pass { [self] placed in
            var place = Reservation()
            place.place(.work { if $0 { body() } }, in: self, ThreadMark.current)
            placed()
            place.serve(ThreadMark.current)
        }
    }

    /// Says whether anything will change the store, behind everything that is in the line. A node says that nothing
    /// will, when it no longer hosts the store. Then the asynchronous sequences that observe it end.
    ///
    /// - Parameter isOver: Whether nothing will change it.
    package func watch(isOver: Bool) {
        inspect { [self] state, _ in
            for hook in hooks.withLock({ $0.watch(isOver: isOver) }) { hook() }
            state?.watchSources(isOver: isOver)
            if let timekeeper, let holder = state as? any ScheduleHolder {
                holder.tell(timekeeper, isOver: isOver)
            }
        }
    }
}

extension StoreCore where S: ReplicatedState {
    /// Puts a snapshot into the state, in the lane, behind what is in the line.
    ///
    /// - Parameters:
    ///   - snapshot: The state's content at `position`.
    ///   - position: The number of the last action that the snapshot contains.
    ///   - epoch: A term in which the log had that number; none if it is not known.
    ///   - version: The schema version in force from there on.
    ///   - mark: Records from then on which ordered action is being committed; nil for no record.
    ///   - completion: Called once, after that. Gets whether the snapshot was restored: it is not
    ///     if the store was released before.
    package func restore(
        _ snapshot: S.Snapshot, at position: SequenceNumber, epoch: Epoch = .none,
        version: Int = S.schemaVersion, mark: CommitMark? = nil,
        completion: @escaping @Sendable (_ isDone: Bool) -> Void
    ) {
        inspect { [self] state, _ in
            guard let state else { return completion(false) }
            let thread = ThreadMark.current
            thread.pointee.isRestoring = true
            state.snapshot = snapshot
            thread.pointee.isRestoring = false
            commitMark = mark
            note(position, epoch)
            versionInForce.store(version, ordering: .releasing)
            follower?.didBegin(state, position)
            completion(true)
        }
    }
}
