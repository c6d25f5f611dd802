import type { DetectedCli } from '../agents/detect.ts'
import type { Agent } from '../agents/schema.ts'
import type { RecipeField, StartRecipe } from '../recipes/start-recipes.ts'

/* What the page of a new user asks for. */

/** `GET /checks/agents`: the programs of this machine, and the agents of agents.yaml. */
export type FoundAgents = {
  readonly programs: readonly DetectedCli[]
  readonly agents: readonly { readonly name: string; readonly kind: Agent['kind'] }[]
  /** Whether gh is installed. */
  readonly gh: boolean
}

/** `POST /checks/agents`: what an agent has answered to one question. */
export type TriedAgent = {
  readonly agent: string
  readonly answer: string
  readonly ms: number
  readonly costUsd?: number
}

/** `GET /webhooks/recipes`; `isSet` is for secrets that are known. */
export type OfferedRecipe = Omit<StartRecipe, 'fields'> & {
  readonly fields: readonly (RecipeField & { readonly isSet: boolean })[]
}

/** `POST /webhooks/sample` takes a payload of one's own up to this size. */
export const maxSampleBytes = 10_240

/** `POST /webhooks/sample`: the event that it became, and what the webhook has answered of it. */
export type SentSample = {
  readonly id: string
  /** `accepted`, `filtered`, `duplicate`, `ping` or `challenge`. */
  readonly status: string
}
