/* The little that the tests use of oidc-provider, which has no types of its own. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  export class Grant {
    constructor(properties: { accountId: string; clientId: string })
    addOIDCScope(scope: string): void
    save(): Promise<string>
    static find(grantId: string): Promise<Grant | undefined>
  }

  export type Interaction = {
    readonly params: { readonly client_id: string }
    readonly session?: { readonly accountId: string }
    readonly grantId?: string
    readonly prompt: {
      readonly name: string
      readonly details: { readonly missingOIDCScope?: readonly string[] }
    }
  }

  export class Provider {
    constructor(issuer: string, configuration: object)
    readonly Grant: typeof Grant
    readonly RefreshToken: {
      new (properties: object): { save(): Promise<string> }
      find(value: string): Promise<{ readonly consumed?: number } | undefined>
    }
    readonly Client: { find(id: string): Promise<object | undefined> }
    readonly AccessToken: { find(value: string): Promise<object | undefined> }
    callback(): (request: IncomingMessage, response: ServerResponse) => void
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: object,
      options: { readonly mergeWithLastSubmission: boolean },
    ): Promise<void>
    on(event: string, listener: (...values: unknown[]) => void): this
  }
}
