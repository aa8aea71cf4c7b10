import ConfluxVocabulary

extension SequencerInput {
    /// What a frame is that came from a node. All shells read frames by this.
    ///
    /// - Parameters:
    ///   - frame: The frame.
    ///   - limits: What the sequencer grants.
    ///   - connection: On which it came.
    ///   - principal: Who speaks on it.
    /// - Returns: What the machine takes for it.
    public static func frame(
        _ frame: Bytes, limits: WireLimits, from connection: ConnectionID,
        as principal: Principal = .anybody
    ) -> SequencerInput {
        do throws(WireError) {
            let message = try Frame.decodeNodeMessage(frame, limits: limits)
            return .received(
                message, by: try Frame.header(of: frame).speaker, from: connection, as: principal)
        } catch {
            return unreadable(frame, error, from: connection, as: principal)
        }
    }

    private static func unreadable(
        _ frame: Bytes, _ failure: WireError, from connection: ConnectionID,
        as principal: Principal
    ) -> SequencerInput {
        do throws(WireError) {
            let header = try Frame.header(of: frame)
            if header.kind == .bye {
                // Of another version, or cut short: its node is gone all the same.
                let bye = (try? Frame.decodeBye(frame)) ?? Bye(code: .leaving, message: "")
                return .received(.bye(bye), by: header.speaker, from: connection)
            }
            // Where the counters can be read the actions are rejected, and their node continues.
            let (visit, outline) = try Frame.outline(ofSubmit: frame)
            let code = failure.byeCode == .unsupported ? RejectionCode.unsupported : .malformed
            return .unreadableSubmit(
                outline, code, message: failure.message, visit: visit, by: header.speaker,
                from: connection, as: principal)
        } catch {
            return .unreadable(failure.byeCode, message: failure.message, from: connection)
        }
    }
}
