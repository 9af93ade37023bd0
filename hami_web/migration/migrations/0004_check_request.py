from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('migration', '0003_run_of_one_node'),
    ]

    operations = [
        migrations.AddField(
            model_name='migrationrun',
            name='request_id',
            field=models.CharField(blank=True, db_default='', default='', max_length=64),
        ),
    ]
