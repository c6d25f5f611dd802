import assert from 'node:assert/strict'
import { describeOutputs } from '../../../../daemon/delivery/outputs/describe.ts'
import { findSubjectAddress } from '../../../../daemon/delivery/outputs/subject.ts'
import { makePrompt } from '../../../../daemon/webhook/prompt.ts'
import type { Rule } from '../../../../shared/config/rule.ts'
import type { SentKind } from '../../../../shared/targets/schema.ts'
import { outputsSchema } from '../../../../shared/targets/outputs.ts'
import { parsePrompt } from '../../../../shared/templates.ts'
import { scopeOf } from '../../../support/scope.ts'

const repository = { full_name: 'acme/door' }
const sha = 'a'.repeat(40)
const pull = { repository, pull_request: { number: 7, head: { sha } } }
const issue = { repository, issue: { number: 3 } }
const pullComment = { repository, issue: { number: 7, pull_request: {} }, comment: {} }
const push = { repository, after: sha }
const project = { path_with_namespace: 'acme/tools/door' }
const merge = { object_kind: 'merge_request', project, object_attributes: { iid: 7 } }
const note = { object_kind: 'note', project, object_attributes: { id: 9 } }

describe('the place of the requests of an answer', () => {
  for (const [kind, payload, address] of [
    ['github-outputs', pull, 'acme/door#7'],
    ['github-outputs', issue, 'acme/door#3'],
    ['github-outputs', pullComment, 'acme/door#7'],
    ['github-outputs', push, 'acme/door'],
    ['github-review', pull, 'acme/door#7'],
    ['github-review', pullComment, 'acme/door#7'],
    ['github-review', issue, undefined],
    ['push', issue, undefined],
    ['push', pull, 'acme/door#7'],
    ['pull-request', issue, 'acme/door'],
    ['github-check', pull, `acme/door@${sha}`],
    ['github-check', push, `acme/door@${sha}`],
    ['github-check', issue, undefined],
    ['github-check', { repository, after: '0'.repeat(40) }, undefined],
    ['gitlab-outputs', merge, 'acme/tools/door!7'],
    ['gitlab-outputs', { ...merge, object_kind: 'issue' }, 'acme/tools/door#7'],
    ['gitlab-outputs', { ...note, merge_request: { iid: 8 } }, 'acme/tools/door!8'],
    ['gitlab-outputs', { ...note, issue: { iid: 4 } }, 'acme/tools/door#4'],
    ['gitlab-outputs', { ...note, object_kind: 'push' }, 'acme/tools/door'],
    ['gitlab-review', { ...note, issue: { iid: 4 } }, undefined],
    ['gitlab-review', merge, 'acme/tools/door!7'],
    ['github-outputs', { repository: { full_name: '../../user#' } }, undefined],
    ['github-outputs', { repository: { full_name: 'a/b#1\n' }, issue: { number: 3 } }, undefined],
    ['github-outputs', { repository, issue: { number: '3' } }, 'acme/door'],
    ['gitlab-outputs', { ...merge, project: { path_with_namespace: '../x' } }, undefined],
    ['github-outputs', merge, undefined],
    ['github-outputs', null, undefined],
  ] as readonly (readonly [SentKind, unknown, string | undefined])[])
    it(`is ${address ?? 'nowhere'} for ${kind} and ${JSON.stringify(payload).slice(0, 60)}`, () => {
      assert.equal(findSubjectAddress(kind, payload), address)
    })
})

describe('what the prompt says of requests', () => {
  const outputs = outputsSchema.parse({
    labels: { allowed: ['bug', 'area/*'], max: 2 },
    issue: {},
    close: {},
  })
  const promptOf = (kind: string) =>
    makePrompt(
      {
        prompt: parsePrompt('Sort it.'),
        values: { eventText: 'plain', maxValueLength: undefined },
        context: [],
        agent: { kind },
        outputs,
      } as unknown as Rule,
      scopeOf({}),
    ).prompt

  it('is there for a model, and not for a program that may repeat it', () => {
    for (const kind of ['claude', 'codex', 'gemini', 'opencode', 'openai'])
      assert.equal(promptOf(kind), `Sort it.\n\n${describeOutputs(outputs)}\n`)
    for (const kind of ['echo', 'command', 'http']) assert.equal(promptOf(kind), 'Sort it.')
  })

  it('names what is allowed, and no more', () => {
    const text = describeOutputs(outputs)
    assert.match(text, /^- "labels": a list of at most 2 of bug, area\/\*$/m)
    assert.match(text, /^- "close": .* only those that doorward opened$/m)
    assert.doesNotMatch(text, /comment|assign/)
    assert.equal(describeOutputs(outputsSchema.parse({ review: true })), '')
  })
})
