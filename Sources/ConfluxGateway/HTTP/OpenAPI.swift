import Conflux
import ConfluxVocabulary

/// The description of the API, in the form of [OpenAPI 3.1](https://spec.openapis.org/oas/v3.1.0): with the stores of
/// this gateway, and the shapes of their actions.
enum OpenAPI {
    static func document(of stores: [any AnyServedStore]) -> [UInt8] {
        let paths = stores.sorted { $0.name < $1.name }.map { Self.paths(of: $0) }
        return Array((beginning + paths.joined() + end).utf8)
    }

    private static let beginning = #"""
        {
          "openapi": "3.1.0",
          "info": {
            "title": "Conflux gateway",
            "version": "1",
            "description": "Replicated stores: read them, follow them, and dispatch actions to them."
          },
          "security": [{}, {"token": []}],
          "paths": {

        """#

    // `If-Match` is described in words: which values are accepted depends on the state, and no schema could say it.
    private static func paths(of store: any AnyServedStore) -> String {
        let schema = (store.catalog?.schema ?? ["type": ["object", "string"]]).description
        return #"""
            "/api/v1/stores/\#(store.name)": {
              "get": {
                "operationId": "get \#(store.name)",
                "summary": "The state of a store.",
                "description": "It has everything that the gateway had applied when it took the request, and so everything for which it gave you a receipt.",
                "parameters": [
                  {
                    "name": "atLeast", "in": "query",
                    "description": "The number of a receipt: the state has that action, too.",
                    "schema": {"$ref": "#/components/schemas/sequence"}
                  },
                  {"$ref": "#/components/parameters/timeout"}
                ],
                "responses": {
                  "200": {
                    "description": "The state.",
                    "headers": {"ETag": {
                      "description": "The version, for If-Match.", "schema": {"type": "string"}
                    }},
                    "content": {"application/json": {"schema": {
                      "type": "object",
                      "required": ["epoch", "log", "sequence", "state", "store", "version"],
                      "additionalProperties": false,
                      "properties": {
                        "epoch": {"type": ["integer", "null"]},
                        "log": {"type": ["string", "null"]},
                        "sequence": {"$ref": "#/components/schemas/sequence"},
                        "state": {},
                        "store": {"type": "string"},
                        "version": {"$ref": "#/components/schemas/version"}
                      }
                    }}}
                  },
                  "default": {"$ref": "#/components/responses/problem"}
                }
              }
            },
            "/api/v1/stores/\#(store.name)/events": {
              "get": {
                "operationId": "events \#(store.name)",
                "summary": "What happens to a store.",
                "description": "Server-sent events: the state first, or what you have missed, and then each change, for as long as you read. The data of an event is a JSON object with a head and a body.",
                "parameters": [
                  {
                    "name": "since", "in": "query",
                    "description": "The number of the last event that you have. You get what came after it; or the state if that is too long ago.",
                    "schema": {"$ref": "#/components/schemas/sequence"}
                  },
                  {
                    "name": "Last-Event-ID", "in": "header",
                    "description": "The id of the last event that you have, instead of 'since'.",
                    "schema": {"type": "string"}
                  },
                  {
                    "name": "as", "in": "query",
                    "description": "Changes are JSON Patches (RFC 6902); actions are those that were dispatched, also those that were refused.",
                    "schema": {"type": "string", "enum": ["changes", "actions"], "default": "changes"}
                  }
                ],
                "responses": {
                  "200": {
                    "description": "The events. Their names are state, change, action, refused and ended.",
                    "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/event"}}}
                  },
                  "default": {"$ref": "#/components/responses/problem"}
                }
              }
            },
            "/api/v1/stores/\#(store.name)/actions": {
              "get": {
                "operationId": "actions \#(store.name)",
                "summary": "The shapes of a store's actions.",
                "parameters": [{"$ref": "#/components/parameters/timeout"}],
                "responses": {
                  "200": {
                    "description": "The actions with their fields; null stands for fields that are not known.",
                    "content": {"application/json": {"schema": {
                      "type": "object",
                      "required": ["actions", "store"],
                      "additionalProperties": false,
                      "properties": {"actions": {"type": ["object", "null"]}, "store": {"type": "string"}}
                    }}}
                  },
                  "default": {"$ref": "#/components/responses/problem"}
                }
              },
              "post": {
                "operationId": "dispatch \#(store.name)",
                "summary": "Dispatch an action.",
                "description": "The answer is a receipt: the action is in the log, durable, and applied at this gateway. With the header If-Match and the ETag of the state, the action is taken only if nothing has changed the store since; otherwise the answer has the status 412 and the present ETag.",
                "parameters": [
                  {
                    "name": "Idempotency-Key", "in": "header",
                    "description": "Repeat a request with the same key as often as you like: the action is applied once, and you get its first outcome.",
                    "schema": {"type": "string", "pattern": "^[!-~]{1,128}$"}
                  },
                  {"$ref": "#/components/parameters/timeout"}
                ],
                "requestBody": {
                  "required": true,
                  "description": "The action, as the operation 'actions' describes it.",
                  "content": {"application/json": {"schema": \#(schema)}}
                },
                "responses": {
                  "200": {
                    "description": "The receipt.",
                    "content": {"application/json": {"schema": {
                      "type": "object",
                      "required": ["receipt"],
                      "additionalProperties": false,
                      "properties": {"receipt": {
                        "type": "object",
                        "required": ["epoch", "log", "sequence", "timestamp"],
                        "additionalProperties": false,
                        "properties": {
                          "epoch": {"type": "integer"},
                          "log": {"type": "string"},
                          "sequence": {"$ref": "#/components/schemas/sequence"},
                          "timestamp": {"type": "string", "format": "date-time"}
                        }
                      }}
                    }}}
                  },
                  "default": {"$ref": "#/components/responses/problem"}
                }
              }
            },

            """#
    }

    private static let end = #"""
            "/api/v1/stores": {
              "get": {
                "operationId": "stores",
                "summary": "The stores that the gateway serves.",
                "parameters": [{"$ref": "#/components/parameters/timeout"}],
                "responses": {
                  "200": {
                    "description": "The stores, with their newest numbers.",
                    "content": {"application/json": {"schema": {
                      "type": "object",
                      "required": ["stores"],
                      "additionalProperties": false,
                      "properties": {"stores": {"type": "array", "items": {
                        "type": "object",
                        "required": ["store"],
                        "additionalProperties": false,
                        "properties": {
                          "store": {"type": "string"},
                          "sequence": {"$ref": "#/components/schemas/sequence"},
                          "ended": {"type": "string", "description": "Why the store is not served any more."}
                        }
                      }}}
                    }}}
                  },
                  "default": {"$ref": "#/components/responses/problem"}
                }
              }
            },
            "/api/v1/openapi.json": {
              "get": {
                "operationId": "document",
                "summary": "This document.",
                "responses": {
                  "200": {
                    "description": "The document.",
                    "content": {"application/json": {"schema": {"type": "object"}}}
                  },
                  "default": {"$ref": "#/components/responses/problem"}
                }
              }
            }
          },
          "components": {
            "securitySchemes": {
              "token": {
                "type": "http", "scheme": "bearer",
                "description": "The token of the gateway's --http-token, if it has one."
              }
            },
            "parameters": {
              "timeout": {
                "name": "timeout", "in": "query",
                "description": "How long the request may take, in milliseconds.",
                "schema": {"type": "integer", "minimum": 100, "maximum": 3600000, "default": 10000}
              }
            },
            "responses": {
              "problem": {
                "description": "Why there is no other answer (RFC 9457). The detail says what to do.",
                "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/problem"}}}
              }
            },
            "schemas": {
              "event": {
                "type": "object",
                "required": ["data", "event", "id"],
                "additionalProperties": false,
                "properties": {
                  "data": {
                    "type": "string", "contentMediaType": "application/json",
                    "description": "An object with a head and a body: docs/gateway.md has them."
                  },
                  "event": {"type": "string", "enum": ["action", "change", "ended", "refused", "state"]},
                  "id": {"type": "string"}
                }
              },
              "sequence": {
                "type": "integer", "minimum": 0, "maximum": 9223372036854775807,
                "description": "The number of an entry in the log."
              },
              "version": {
                "type": "string", "pattern": "^[0-9]+(@[0-9]+)?$",
                "description": "The version of a store, for If-Match."
              },
              "problem": {
                "type": "object",
                "required": ["type", "title", "status", "code", "detail"],
                "additionalProperties": false,
                "properties": {
                  "type": {"type": "string"},
                  "title": {"type": "string"},
                  "status": {"type": "integer"},
                  "code": {"type": "string", "description": "What kind of problem it is."},
                  "detail": {"type": "string"},
                  "sequence": {"$ref": "#/components/schemas/sequence"},
                  "version": {"$ref": "#/components/schemas/version"}
                }
              }
            }
          }
        }

        """#
}
