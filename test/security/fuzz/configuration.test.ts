import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as fc from 'fast-check'
import { ConfigError, checkConfig } from '../../../shared/config/load.ts'
import { readYaml } from '../../../shared/config/yaml.ts'
import { bytesLike, holds } from '../../support/fuzz/fuzz.ts'

const names = ['gateway', 'agents', 'webhooks', 'schedules'] as const
const samples = names.map((name) =>
  readFileSync(fileURLToPath(new URL(`../../../../config/${name}.yaml`, import.meta.url))),
)

describe('any configuration', () => {
  holds(
    'is taken, or refused with the place of all that is wrong',
    400,
    fc.property(
      fc.tuple(...names.map(() => bytesLike('yaml', samples))),
      fc.constantFrom(undefined, '', '0', '99999', 'x'),
      (files, port) => {
        const texts = files.map((bytes) => bytes.toString())
        const [gateway, agents, webhooks, schedules] = texts.map((text, place) =>
          readYaml(`${names[place]}.yaml`, text),
        )
        assert.ok(gateway && agents && webhooks && schedules)
        try {
          checkConfig(gateway, agents, webhooks, { DOORWARD_PORT: port }, undefined, schedules)
        } catch (error) {
          assert.ok(error instanceof ConfigError, String(error))
          assert.ok(error.problems.length > 0)
          for (const { file, line, column, reason } of error.problems) {
            const place = names.findIndex((name) => file === `${name}.yaml`)
            const lines = texts[place]?.split('\n') ?? ['']
            assert.ok(place >= 0 || file === 'environment', file)
            assert.ok(Number.isInteger(line) && line >= 1 && line <= lines.length, `line ${line}`)
            assert.ok(Number.isInteger(column) && column >= 1, `column ${column}`)
            assert.notEqual(reason, '')
          }
          const [, first = ''] = error.message.split('\n')
          assert.match(
            first,
            /^(gateway|agents|webhooks|schedules)\.yaml:\d+:\d+ |^environment:1:1 /,
          )
        }
        assert.equal(Object.hasOwn(Object.prototype, 'a'), false)
      },
    ),
  )
})
