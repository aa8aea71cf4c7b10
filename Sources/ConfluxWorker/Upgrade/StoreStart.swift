import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

extension CommandFailure {
    /// The code for a snapshot that the log does not give.
    package static let snapshotGone = "snapshotGone"
}

/// Reads what stores begin with.
extension Connection {
    /// Asks for what a store begins with.
    ///
    /// - Returns: The start; nil if there is no such store any more.
    package func start(of store: StoreName) async throws(CommandFailure) -> ReadStart? {
        do throws(NodeError) {
            return try await core.start(of: store, patience: timeout)
        } catch {
            throw CommandFailure(error)
        }
    }

    /// Loads a start. If a newer snapshot has taken its place meanwhile, the command has to begin again.
    package func load(_ start: ReadStart) async throws(CommandFailure) -> HistoryStart {
        func bytes(_ reference: SnapshotReference) async throws(CommandFailure) -> Bytes {
            let place = SnapshotPlace(
                store: start.store, life: start.life, sequence: reference.sequence)
            guard let bytes = try await self.bytes(place, reference) else {
                throw CommandFailure(
                    .logFailed, code: CommandFailure.snapshotGone,
                    """
                    The log does not give the snapshot of \(start.store) at entry \(reference.sequence): it was \
                    replaced meanwhile, it is damaged, or it is larger than a node takes. Try again. If that \
                    fails, too, look for snapshotFailed in the sequencer's output.
                    """)
            }
            return bytes
        }
        return try await start.loaded(bytes)
    }

    /// Loads bytes. As long as that takes, the sequencer must answer in time.
    ///
    /// - Returns: The bytes; nil if the log no longer has them.
    package func bytes(
        _ place: SnapshotPlace, _ reference: SnapshotReference
    ) async throws(CommandFailure) -> Bytes? {
        let result = await withTaskGroup(of: Result<Bytes?, CommandFailure>.self) { group in
            group.addTask { .success(await core.load(place, reference)) }
            group.addTask {
                while !Task.isCancelled {
                    await Pause.wait(for: timeout)
                    guard !Task.isCancelled else { break }
                    do throws(CommandFailure) {
                        _ = try await status()
                    } catch {
                        return .failure(error)
                    }
                }
                return .success(nil)
            }
            defer { group.cancelAll() }
            return await group.next() ?? .success(nil)
        }
        if Task.isCancelled {
            throw CommandFailure(
                .interrupted, "Interrupted before the states of all stores were read. Run it again."
            )
        }
        return try result.get()
    }
}
