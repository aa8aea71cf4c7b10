import ConfluxVocabulary

extension SequencerInput {
    /// Makes an input from a frame that a node sent. All shells read frames with this function.
    ///
    /// - Parameters:
    ///   - frame: The frame.
    ///   - limits: The limits that the sequencer grants.
    ///   - connection: The connection on which it came.
    ///   - principal: The peer on that connection.
    ///   - isBehind: Whether the peer has too much to read already, so that it gets no long answer.
    /// - Returns: The input for the machine.
    public static func frame(
        _ frame: Bytes, limits: WireLimits, from connection: ConnectionID,
        as principal: Principal = .anybody, isBehind: Bool = false
    ) -> SequencerInput {
        do throws(WireError) {
            let (message, header) = try Frame.readNodeMessage(frame, limits: limits)
            switch message {
            case .fetch where isBehind, .load where isBehind, .question where isBehind:
                return .surplus(message, from: connection, as: principal)
            default: break
            }
            return .received(message, by: header.speaker, from: connection, as: principal)
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
                // The bye is of another version, or truncated. Its node has left all the same.
                let bye = (try? Frame.decodeBye(frame)) ?? Bye(code: .leaving, message: "")
                return .received(.bye(bye), by: header.speaker, from: connection)
            }
            // If the counters can be read, the actions are rejected, and their node continues.
            let outline = try Frame.outline(ofSubmit: frame)
            let code = failure.byeCode == .unsupported ? RejectionCode.unsupported : .malformed
            return .unreadableSubmit(
                outline, code, message: failure.message, by: header.speaker,
                from: connection, as: principal)
        } catch {
            return .unreadable(failure.byeCode, message: failure.message, from: connection)
        }
    }
}
