exports.up = (pgm) => {
  pgm.addTypeValue('mood', 'glad', {after: 'ok'});
  pgm.addColumns('visit', {place: {type: 'text', notNull: true, default: 'here'}});
  pgm.alterColumn('visit', 'score', {default: 3, notNull: true});
  pgm.addConstraint('visit', 'visit_once', {unique: ['person_id', 'place']});
  pgm.renameColumn('person', 'created', 'made');
  pgm.createView('few', {columns: ['id']}, 'SELECT id FROM person');
  pgm.createSequence('numbers', {start: 10});
  pgm.sql("COMMENT ON COLUMN visit.place IS 'where'");
};

exports.down = (pgm) => {
  pgm.dropSequence('numbers');
  pgm.dropView('few');
  pgm.renameColumn('person', 'made', 'created');
  pgm.dropConstraint('visit', 'visit_once');
  pgm.alterColumn('visit', 'score', {default: 1, notNull: false});
  pgm.dropColumns('visit', ['place']);
};
