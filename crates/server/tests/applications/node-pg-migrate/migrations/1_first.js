exports.up = (pgm) => {
  pgm.createType('mood', ['sad', 'ok']);
  pgm.createTable('person', {
    id: 'id',
    name: {type: 'varchar(40)', notNull: true, default: 'x', comment: 'a name'},
    email: {type: 'text', unique: true},
    mood: {type: 'mood', default: 'ok'},
    created: {type: 'timestamptz', notNull: true, default: pgm.func('current_timestamp')},
  }, {comment: 'people'});
  pgm.createTable('visit', {
    id: {type: 'bigint', primaryKey: true, sequenceGenerated: {precedence: 'ALWAYS'}},
    person_id: {type: 'integer', notNull: true, references: 'person', onDelete: 'CASCADE'},
    score: {type: 'double precision', default: 1, check: 'score >= 0'},
    twice: {type: 'double precision', expressionGenerated: 'score * 2'},
  });
  pgm.createIndex('visit', ['person_id', {name: 'score', sort: 'DESC'}]);
  pgm.createIndex('visit', 'score', {name: 'visit_part', where: 'score > 5', unique: true});
};

exports.down = (pgm) => {
  pgm.dropTable('visit');
  pgm.dropTable('person');
  pgm.dropType('mood');
};
